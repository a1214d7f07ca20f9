"""How the outputs of many estimators become one, in and out of bag."""
