#include "easydel/data/saved_rows.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/data/columnar.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

Prepared nothing(const TypedRow&) { return {}; }

class SavedRows : public testing::Test {
 protected:
  // `inform`: keys in addition to its files; `save`: keys in addition to path and what.
  MixtureConfig mixture(const std::string& inform, const std::string& save, const std::string& file = "rows.jsonl",
                        const std::string& more = "") const {
    MixtureConfig out;
    config::read(parse_yaml(str("{informs: [{data_files: ", (folder_ / file).string(), inform,
                                "}], save: {what: rows, path: ", (folder_ / "out").string(), ", overwrite: true, ",
                                save, "}", more, "}")),
                 out, "mixture")
        .throw_if_any();
    return out;
  }
  static DatasetOptions options(const MixtureConfig& mixture) {
    DatasetOptions out;
    out.informs = training_informs(mixture);
    out.bad_rows.skip = mixture.on_bad_row == OnBadRow::skip;
    out.deduplicate = mixture.deduplicate == Deduplicate::exact;
    return out;
  }
  static std::vector<fs::path> save(const MixtureConfig& mixture, const Prepare& prepare = nothing) {
    return save_rows("mixture.save", options(mixture), prepare, mixture, "sft");
  }
  void write(const std::string& rows) const { test::write_file(folder_ / "rows.jsonl", rows); }
  static std::string text(const std::vector<fs::path>& files) {
    std::string out;
    for (const auto& file : files) out += test::read_file(file);
    return out;
  }
  test::TemporaryFolder folder_;
};

std::string rows_of(const std::vector<fs::path>& files, const std::vector<std::string>& raw = {}) {
  std::string out;
  ReadOptions options;
  options.raw_fields = raw;
  for (const auto& file : files)
    source_of_file(file)->read(file, options, [&](const Row& row) { return out += to_json(row.fields) + "\n", true; });
  return out;
}

const char* const varied =
    R"({"messages": [{"role": "user", "content": "Hi\n\"you\""}], "k": 1, "w": 0.1, "b": false, "x": [], "z": null}
{"messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": ""}], "k": -2, "w": 3.0, "b": true, "x": ["a"], "z": null}
{"messages": [{"role": "user", "content": "c"}], "k": 9007199254740993, "w": 1e-07, "b": true, "x": ["b", null], "z": null}
)";

TEST_F(SavedRows, EachFormatHoldsTheRowsThatTheSourceHas) {
  write(varied);
  std::vector<std::string> formats{"jsonl", "json"};
  if (columnar_library_is_there())
    for (const char* format : {"parquet", "arrow", "parquet, compression: zstd", "arrow, num_shards: 2"})
      formats.emplace_back(format);
  for (const std::string& format : formats)
    EXPECT_EQ(test::replaced(rows_of(save(mixture("", "format: " + format))), "3.0", "3"),
              test::replaced(varied, "3.0", "3"))
        << format;
}

TEST_F(SavedRows, MayDifferInTheirFieldsAndKinds) {
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  write(R"({"text": "a", "x": 1, "call": {"f": [1, 2.5]}}
{"text": "b", "x": "one", "call": {"g": {}}}
{"text": "c", "y": [[1], [2, 3]]}
)");
  for (const char* format : {"format: parquet", "format: arrow"})
    EXPECT_EQ(rows_of(save(mixture("", format))), R"({"text": "a", "x": 1, "call": {"f": [1, 2.5]}, "y": null}
{"text": "b", "x": "one", "call": {"g": {}}, "y": null}
{"text": "c", "x": null, "call": null, "y": [[1], [2, 3]]}
)");
  EXPECT_EQ(rows_of(save(mixture("", "format: jsonl"))), test::read_file(folder_ / "rows.jsonl"));
}

TEST_F(SavedRows, AreWhatTheStepsOfTheInformMake) {
  write(R"({"instruction": "Add 1 and 2.", "input": "", "output": "3", "lang": "en"}
{"instruction": "Rechne.", "input": "", "output": "4", "lang": "de"}
)");
  const std::string steps = R"(, filter: "{{ lang == 'en' }}", map: {note: "{{ output }}!"}, format: alpaca)";
  EXPECT_EQ(text(save(mixture(steps, "format: jsonl"))),
            R"({"lang": "en", "note": "3!", "instruction": "Add 1 and 2.", "input": "", "output": "3"})"
            "\n");
}

TEST_F(SavedRows, WithAContentFieldTheyHaveWhatIsUsed) {
  write(R"({"body": "a", "text": "other", "title": "t", "id": 1, "w": 2, "tools": null})"
        "\n");
  EXPECT_EQ(text(save(mixture(", content_field: body, additional_fields: [title], weight_field: w", "format: jsonl"))),
            R"({"text": "a", "title": "t", "w": 2, "tools": null})"
            "\n");
  write(R"({"talk": [{"from": "human", "value": "Hi"}], "id": 1})"
        "\n");
  EXPECT_EQ(text(save(mixture(", content_field: talk", "format: jsonl"))),
            R"({"messages": [{"from": "human", "value": "Hi"}]})"
            "\n");
  write(R"({"question": "Q", "chosen": "a", "rejected": "b", "id": 1})"
        "\n");
  EXPECT_EQ(text(save(mixture(", content_field: question", "format: jsonl"))),
            R"({"chosen": "a", "rejected": "b", "id": 1, "prompt": "Q"})"
            "\n");
}

TEST_F(SavedRows, LackThoseThatTrainingLeavesOut) {
  write("{\"text\": \"one\"}\nbroken\n{\"text\": \"One!\"}\n{\"text\": \"bad\"}\n{\"text\": \"two\"}\n");
  const Prepare refusing = [](const TypedRow& row) {
    if (row.text.scalar == "bad") refuse(row.where, "the row is bad");
    return Prepared();
  };
  const log::Quiet quiet;
  const MixtureConfig one = mixture("", "format: jsonl", "rows.jsonl", ", on_bad_row: skip, deduplicate: exact");
  EXPECT_EQ(text(save(one, refusing)), "{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
}

TEST_F(SavedRows, AreCutIntoFilesByCountOrBySize) {
  write("{\"text\": \"aaaaaaaaaa\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n{\"text\": \"d\"}\n");
  EXPECT_EQ(save(mixture("", "format: jsonl, num_shards: 3")).size(), 3u);
  const auto files = save(mixture("", "format: jsonl, max_shard_size: 30"));
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(test::read_file(files[0]), "{\"text\": \"aaaaaaaaaa\"}\n");
  EXPECT_EQ(test::read_file(files[1]), "{\"text\": \"b\"}\n{\"text\": \"c\"}\n");
}

TEST_F(SavedRows, OfTextsAndNumbersFitIntoCsv) {
  write(R"({"text": "a, \"b\"\nc", "n": 1.5, "b": true, "none": null}
{"text": "", "n": 2, "b": false, "none": null}
{"text": "c", "n": 3, "b": true}
)");
  const auto files = save(mixture("", "format: csv"));
  EXPECT_EQ(text(files),
            "\"text\",\"n\",\"b\",\"none\"\n\"a, \"\"b\"\"\nc\",1.5,true,\n\"\",2,false,\n\"c\",3,true,\n");
  EXPECT_EQ(rows_of(files), R"({"text": "a, \"b\"\nc", "n": "1.5", "b": "true", "none": null}
{"text": "", "n": "2", "b": "false", "none": null}
{"text": "c", "n": "3", "b": "true", "none": null}
)");
  write(varied);
  EXPECT_EQ(test::refusal([&] { save(mixture("", "format: csv")); }),
            "mixture.save.format: csv cannot hold the field 'messages', which is not a text or a number in each row\n"
            "    choose parquet, arrow, json or jsonl");
}

TEST_F(SavedRows, ACsvOfOneColumnHasNoEmptyLines) {
  write("{\"text\": \"a\"}\n{\"text\": \"\"}\n");
  EXPECT_EQ(text(save(mixture("", "format: csv"))), "\"text\"\n\"a\"\n\"\"\n");
}

TEST_F(SavedRows, HaveImagesAsDatasetsKeepsThem) {
  const std::string png = test::read_file(test::test_data("images") / "rgb.png");
  test::write_file(folder_ / "pictures/one.png", png);
  write(R"({"image": "pictures/one.png", "text": "A gradient."}
{"image": null, "messages": null, "text": "None."}
)");
  const log::Quiet quiet;
  const std::string keys = ", type: visual", skip = ", on_bad_row: skip";
  const Value row = parse_json(text(save(mixture(keys, "format: jsonl", "rows.jsonl", skip))));
  EXPECT_EQ(row.find("image")->find("path")->scalar, "one.png");
  EXPECT_TRUE(row.find("image")->find("bytes")->scalar.starts_with("iVBORw0KGgo"));
  if (!columnar_library_is_there()) return;
  for (const char* format : {"parquet", "arrow"}) {
    const auto files = save(mixture(keys, str("format: ", format), "rows.jsonl", skip));
    int rows = 0;
    ReadOptions raw;
    raw.raw_fields = {"image"};
    source_of_file(files[0])->read(files[0], raw, [&](const Row& one) {
      EXPECT_EQ(one.fields.find("image")->find("bytes")->scalar, png);
      EXPECT_EQ(one.fields.find("text")->scalar, "A gradient.");
      return ++rows, true;
    });
    EXPECT_EQ(rows, 1);
    const Value info = parse_file(folder_ / "out/dataset_info.json");
    EXPECT_EQ(to_json(*info.find("features")->find("image")), R"({"_type": "Image"})");
  }
}

TEST_F(SavedRows, ImagesOfMessagesAreAListInTheirOrder) {
  for (const char* name : {"rgb.png", "grey.png", "turned_6.jpg"})
    test::write_file(folder_ / name, test::read_file(test::test_data("images") / name));
  write(R"({"messages": [{"role": "user", "content": [{"type": "image", "image": "rgb.png"}, {"type": "image"}, )"
        R"({"type": "image", "image": "grey.png"}]}], "images": ["turned_6.jpg"]})"
        "\n");
  const Value row = parse_json(text(save(mixture(", type: visual", "format: jsonl"))));
  std::string paths;
  for (const Value& image : row.find("images")->items) paths += image.find("path")->scalar + " ";
  EXPECT_EQ(paths, "rgb.png turned_6.jpg grey.png ");
  EXPECT_EQ(to_json(*row.find("messages")),
            R"([{"role": "user", "content": [{"type": "image"}, {"type": "image"}, {"type": "image"}]}])");
}

TEST_F(SavedRows, TheSameRowsAreLeftAlone) {
  write("{\"text\": \"a\"}\n");
  MixtureConfig once = mixture("", "format: jsonl");
  once.save->overwrite = false;
  const auto file = save(once).at(0);
  const auto written = fs::last_write_time(file);
  save(once);
  EXPECT_EQ(fs::last_write_time(file), written);
  write("{\"text\": \"b\"}\n");
  EXPECT_EQ(test::replaced(test::refusal([&] { save(once); }), folder_.path().string(), "DIR"),
            "mixture.save.output_path: 'DIR/out' already exists and holds other data\n"
            "    set overwrite: true, or name another folder");
}

TEST_F(SavedRows, ThatChangeMeanwhileAreRefused) {
  const auto changed = [&](const std::string& later, const std::string& format) {
    write("{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
    // The lock is the first thing that a save makes once it has read the rows.
    files::set_fault([&](files::Operation operation, const fs::path& path) {
      if (operation == files::Operation::mkdir && path.string().find("partial") != std::string::npos) write(later);
      return 0;
    });
    const std::string out = test::refusal([&] { save(mixture("", format)); });
    files::set_fault(nullptr);
    EXPECT_FALSE(fs::exists(folder_ / "out"));
    return out;
  };
  const std::string want =
      "mixture.save: the rows changed while they were saved\n    do not change the files while they are read";
  EXPECT_EQ(changed("{\"text\": \"a\"}\n{\"text\": \"c\"}\n", "format: jsonl"), want);
  EXPECT_EQ(changed("{\"text\": \"a\"}\n", "format: jsonl"), want);
  EXPECT_EQ(changed("{\"text\": \"a\"}\n{\"text\": \"b\"}\n{\"text\": \"c\"}\n", "format: jsonl"), want);
  if (!columnar_library_is_there()) return;
  const std::string type = changed("{\"text\": \"a\"}\n{\"text\": \"b\", \"k\": 1}\n", "format: parquet");
  EXPECT_EQ(type, want);
}

TEST_F(SavedRows, RefuseWhatTheyCannotBe) {
  write("{\"text\": \"a\"}\n");
  EXPECT_EQ(test::refusal([&] { save(mixture(", filter: \"{{ false }}\"", "format: jsonl")); }),
            "mixture.save: there are no rows to save\n    look at the informs' filters");
  write("{\"text\": \"a\"}\nbroken\n");
  EXPECT_NE(test::refusal([&] { save(mixture("", "format: jsonl")); }).find("rows.jsonl:2"), std::string::npos);
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

// With `datasets` itself, where EASYDEL_DATASETS names a Python that has it.
TEST_F(SavedRows, AreReadByDatasets) {
  const char* const python = std::getenv("EASYDEL_DATASETS");
  if (!python) GTEST_SKIP() << "EASYDEL_DATASETS names no Python with `datasets`";
  if (!columnar_library_is_there()) GTEST_SKIP() << "built without Arrow";
  write(R"({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "name": "f", "content": "b"}], "k": 1}
{"messages": [{"role": "user", "content": "c"}], "k": 2.5, "x": "one", "y": {"a": 1}}
{"messages": [{"role": "user", "content": "d"}], "x": 1, "y": {"a": null}, "z": [[1], []]}
)");
  const std::string program = R"(
import datasets, json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
names = list(dict.fromkeys(name for row in rows for name in row))
want = [{name: row.get(name) for name in names} for row in rows]
read = datasets.load_from_disk(sys.argv[2]) if sys.argv[3] == "arrow" else datasets.load_dataset(sys.argv[2], cache_dir=sys.argv[2] + ".cache")["train"]
assert list(read) == want, (list(read), want)
)";
  for (const std::string format : {"parquet", "arrow", "jsonl"}) {
    save(mixture("", "format: " + format));
    const test::Ran ran =
        test::run({python, "-c", program, (folder_ / "rows.jsonl").string(), (folder_ / "out").string(), format});
    EXPECT_EQ(ran.status, 0) << format << ": " << ran.err;
  }
}

}  // namespace
}  // namespace easydel::data
