#!/usr/bin/env python3
"""Writes tests/data/columnar: small Parquet and Arrow files of every type, and the rows that `datasets` reads from them.

python3 scripts/columnar_fixtures.py tests/data/columnar   (needs pyarrow and datasets)
"""
import datetime as dt
import decimal
import io
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, Features, Image, Json, List, Value

utc = dt.timezone.utc
stamp = dt.datetime(2024, 1, 2, 3, 4, 5, 678901)
old = dt.datetime(1969, 12, 31, 23, 59, 58, 998500)
D = decimal.Decimal


def types():
    """Columns of types that `datasets` supports: name, array."""
    yield "int8", pa.array([1, None, -128], pa.int8())
    yield "uint64", pa.array([2**64 - 1, 0, None], pa.uint64())
    yield "int64", pa.array([-(2**63), 2**63 - 1, 7], pa.int64())
    yield "float16", pa.array([0.5, 1.5, None], pa.float16())
    yield "float32", pa.array([0.25, -3.5, None], pa.float32())
    yield "float64", pa.array([0.1, 1e300, None], pa.float64())
    yield "bool", pa.array([True, None, False])
    yield "string", pa.array(["a\"b\\\n", None, "héllo 😀"])
    yield "large_string", pa.array(["x", "", None], pa.large_string())
    yield "dictionary", pa.array(["yes", "no", None]).dictionary_encode()
    yield "decimal", pa.array([D("12.50"), D("-0.01"), None], pa.decimal128(10, 2))
    yield "decimal256", pa.array([D("1e30"), None, D("5")], pa.decimal256(60, 2))
    yield "date32", pa.array([stamp.date(), None, old.date()], pa.date32())
    yield "date64", pa.array([stamp.date(), None, old.date()], pa.date64())
    for unit in "s", "ms", "us", "ns":
        yield f"timestamp_{unit}", pa.array([stamp, None, old], pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
        yield f"duration_{unit}", pa.array(
            [dt.timedelta(days=1, microseconds=5005), None, dt.timedelta(microseconds=-1500)], pa.duration("us")
        ).cast(pa.duration(unit), safe=False)
    yield "timestamp_utc", pa.array([stamp.replace(tzinfo=utc), None, old.replace(tzinfo=utc)], pa.timestamp("us", "UTC"))
    yield "time32", pa.array([dt.time(3, 4, 5), None, dt.time(23, 59, 59)], pa.time32("s"))
    yield "time64", pa.array([dt.time(3, 4, 5), None, dt.time(3, 4, 5, 6000)], pa.time64("us"))
    yield "binary", pa.array([b"abc", None, b""])
    yield "null", pa.nulls(3)
    yield "list", pa.array([[1, None, 3], None, []], pa.list_(pa.int32()))
    yield "large_list", pa.array([["a"], None, []], pa.large_list(pa.string()))
    yield "fixed_list", pa.array([[1.5, 2.5], None, [3.5, 4.5]], pa.list_(pa.float64(), 2))
    yield "struct", pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}],
                             pa.struct([("a", pa.int64()), ("b", pa.string())]))
    yield "messages", pa.array(
        [[{"role": "user", "content": "q", "parts": [{"n": 1}]}, {"role": "assistant", "content": None, "parts": None}], [], None],
        pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("parts", pa.list_(pa.struct([("n", pa.int64())])))])))


def others():
    """Columns that `datasets` refuses or reads as something else: name, array, the rows by hand."""
    yield "map", pa.array([[("a", 1), ("b", None)], None, []], pa.map_(pa.string(), pa.int64())), [{"a": 1, "b": None}, None, {}]
    yield "map_of_numbers", pa.array([[(1, "x")], None, []], pa.map_(pa.int32(), pa.string())), [[[1, "x"]], None, []]
    yield "string_view", pa.array(["short", None, "longer than twelve bytes"], pa.string_view()), ["short", None, "longer than twelve bytes"]
    yield "binary_view", pa.array([b"short", None, b"longer than twelve bytes"], pa.binary_view()), ["short", None, "longer than twelve bytes"]
    yield "fixed_binary", pa.array([b"abc", None, b"xyz"], pa.binary(3)), ["abc", None, "xyz"]
    yield "large_binary", pa.array([b"abc", None, b""], pa.large_binary()), ["abc", None, ""]
    yield "json", pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": [1]}', None, '"x"'])), [{"a": [1]}, None, "x"]


def arrow_only():
    """Columns that Parquet has no form for."""
    yield "list_view", pa.array([[1, 2], None, []], pa.list_view(pa.int64())), [[1, 2], None, []]
    yield "large_list_view", pa.array([[1, 2], None, []], pa.large_list_view(pa.int64())), [[1, 2], None, []]
    yield "runs", pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None])), ["a", "a", None]
    yield "sparse", pa.UnionArray.from_sparse(pa.array([0, 1, 0], pa.int8()), [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]), [1, "b", 3]
    yield "dense", pa.UnionArray.from_dense(pa.array([0, 1, 0], pa.int8()), pa.array([0, 0, 1], pa.int32()), [pa.array([1, 3]), pa.array(["b"])]), [1, "b", 3]
    yield "decimal32", pa.array([D("1.5"), None, D("-2.5")], pa.decimal32(5, 1)), ["1.5", None, "-2.5"]


def write_lines(path, columns):
    with open(path, "w") as file:
        for i in range(3):
            file.write(json.dumps({name: rows[i] for name, rows in columns.items()}) + "\n")


def stream(path, table, batch=2):
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    rows, arrays = {}, {}
    for name, array in types():
        arrays[name] = array
        text = io.BytesIO()
        Dataset(pa.table({name: array})).to_json(text)
        rows[name] = [json.loads(line)[name] for line in text.getvalue().splitlines()]
    rows["float64"] = [0.1, 1e300, None]  # pandas writes ten digits
    for name, array, by_hand in others():
        arrays[name], rows[name] = array, by_hand
    table = pa.table(arrays)
    write_lines(out / "types.jsonl", rows)
    pq.write_table(table, out / "types.parquet", row_group_size=2)
    for name, array, by_hand in arrow_only():
        arrays[name], rows[name] = array, by_hand
    table = pa.table(arrays)
    write_lines(out / "arrow_types.jsonl", rows)
    stream(out / "arrow_types_stream.arrow", table)
    with pa.OSFile(str(out / "arrow_types_file.arrow"), "wb") as sink, pa.ipc.new_file(
        sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table, max_chunksize=2)

    texts = pa.table({"id": list(range(40)), "text": [f"row {i} " + "word " * (i % 7) for i in range(40)]})
    for codec in "none", "snappy", "gzip", "zstd", "lz4", "brotli":
        for version in "1.0", "2.0":
            name = out / f"{codec}_{version[0]}.parquet"
            pq.write_table(texts, name, compression=codec, data_page_version=version, row_group_size=15)
    (out / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts.to_pylist()))

    pq.write_table(pa.table({"id": [1, 2], "bytes": [b"ok", b"\xff\xfe"]}), out / "bytes.parquet")
    stream(out / "months.arrow", pa.table({"months": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}))
    stream(out / "doubled.arrow", pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["text", "text"]))
    stream(out / "not_utf8.arrow", pa.table({"text": pa.array([b"\xff"]).view(pa.string())}))

    features = Features({"messages": List({"role": Value("string"), "content": Value("string")}), "tools": Json()})
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": {"type": "integer"}}}}}]
    chats = Dataset.from_list(
        [{"messages": [{"role": "user", "content": f"hi {i}"}, {"role": "assistant", "content": "yo"}], "tools": tools if i % 2 else None}
         for i in range(5)], features=features)
    chats.save_to_disk(out / "saved", num_shards=2)
    chats.to_parquet(out / "chats.parquet")

    folder = out.parent / "images"
    pictures = [[{"path": name, "bytes": (folder / name).read_bytes()} for name in names]
                for names in (["turned_6.jpg"], ["rgba.png", "lossy.webp"])]
    features = Features({"images": List(Image()), "caption": Value("string")})
    captions = Dataset.from_dict({"images": pictures, "caption": ["a gradient", "two gradients"]}, features=features)
    captions.to_parquet(out / "images.parquet")


main(pathlib.Path(sys.argv[1]))
