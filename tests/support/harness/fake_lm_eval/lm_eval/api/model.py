class TemplateLM:
    pass
