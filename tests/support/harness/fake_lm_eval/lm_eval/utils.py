import hashlib


def handle_non_serializable(value):
    return str(value)


def hash_string(text):
    return hashlib.sha256(text.encode()).hexdigest()


def make_table(document, column="results"):
    return "".join(f"|{name}|\n" for name in document[column])


def simple_parse_args_string(text):
    return dict(pair.split("=", 1) for pair in text.split(",") if pair)
