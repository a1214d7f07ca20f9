"""Voting: combining the outputs of many estimators into one, in bag and out of bag."""
