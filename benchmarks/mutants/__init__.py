"""Small faults put into a copy of the code, one at a time: does a test that is near see each?"""
