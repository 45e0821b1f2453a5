class _Metric:
    def compute(self, **options):
        return options


def load(name):
    return _Metric()
