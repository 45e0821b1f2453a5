def load_yaml(file, **options):
    return {}
