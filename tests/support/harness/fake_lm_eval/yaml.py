class YAMLError(Exception):
    pass
