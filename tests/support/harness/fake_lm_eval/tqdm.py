class tqdm:
    def __init__(self, **arguments):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def update(self, count):
        pass
