class _Registry(dict):
    def register(self, name, target):
        self[name] = target


model_registry = _Registry()


def register_model(name):
    def register(model):
        model_registry[name] = model
        return model

    return register
