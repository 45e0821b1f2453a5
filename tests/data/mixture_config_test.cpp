#include "easydel/data/mixture_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/data/row_function.h"

namespace easydel::data {
namespace {

struct Read {
  MixtureConfig config;
  std::string problems, notes;
};

Read read(const std::string& yaml) {
  Read out;
  const config::Problems problems = config::read(parse_yaml(yaml), out.config, "run.yaml");
  if (!problems.empty()) out.problems = problems.text();
  for (const std::string& note : problems.notes()) out.notes += note + "\n";
  return out;
}

TEST(MixtureConfig, TheGuidesOwnSpellingsAreRead) {
  const Read run = read(
      "informs:\n"
      "  - {type: json, data_files: 'train/*.json', content_field: text, split: train}\n"
      "  - {type: json, data_files: [a.json, b.json], format_fields: {question: prompt}, num_rows: 10000, split: "
      "valid}\n"
      "batch_size: 32\nshuffle_buffer_size: 10000\nseed: 42\npack_tokens: true\npack_seq_length: 2048\n"
      "pack_eos_token_id: 2\npack_shuffle: true\npack_shuffle_buffer_factor: 10\npack_on_the_fly: true\n"
      "block_mixture: true\nmixture_block_size: 1000\nstop_strategy: first_exhausted\nprefetch_workers: 4\n"
      "prefetch_buffer_size: 100\ncache_remote_files: true\n"
      "tokenization: {max_length: 2048, truncation: true, padding: max_length}\n"
      "save: {path: ./processed_dataset, format: parquet}\n");
  EXPECT_EQ(run.problems, "");
  EXPECT_EQ(training_informs(run.config).size(), 1u);
  EXPECT_EQ(evaluation_informs(run.config).size(), 1u);
  EXPECT_EQ(run.config.save->output_path, "./processed_dataset");
  EXPECT_EQ(run.config.stop_strategy, StopStrategy::first_exhausted);
}

TEST(MixtureConfig, NamesComeFromFilesAndDoublesAreNumbered) {
  const Read run = read(
      "informs: [{data_files: wiki/train.jsonl}, {data_files: books.jsonl}, {data_files: old/books.jsonl}, "
      "{data_files: x.json, name: mine}]");
  EXPECT_EQ(names_of(run.config.informs), (std::vector<std::string>{"wiki", "books", "books-1", "mine"}));
}

TEST(MixtureConfig, WeightsNameTheirSources) {
  EXPECT_EQ(
      read("{informs: [{data_files: a.json}, {data_files: b.json}], block_mixture: true, "
           "mixture_weights: {a: 0.8, c: 0.2}}")
          .problems,
      "run.yaml:1:95: mixture_weights: the weights' names are not the sources' names; without a weight: b; no such "
      "source: c\n    give each of these a weight: a, b\n1 problem in run.yaml; nothing was run.");
}

TEST(MixtureConfig, WeightsMayBeOfSourcesThatAreOnlyEvaluatedOn) {
  const std::string evaluated = "{data_files: b.json, split: test}";
  EXPECT_EQ(read("{informs: [" + evaluated + "], block_mixture: true, mixture_weights: {b: 1}}").problems, "");
  const std::string problems =
      read("{informs: [{data_files: a.json}, " + evaluated + "], block_mixture: true, mixture_weights: {a: 0, b: 1}}")
          .problems;
  EXPECT_NE(problems.find("the weights add up to 0"), std::string::npos) << problems;
}

TEST(MixtureConfig, AScheduleOfWeightsNamesTheSourcesAtRisingSteps) {
  const auto with = [](const std::string& points, const std::string& more = "block_mixture: true, ") {
    return read("{informs: [{data_files: a.json}, {data_files: b.json}], " + more +
                "mixture_weight_schedule: {interpolation: cosine, points: " + points + "}}");
  };
  const auto problem = [&](const std::string& points) {
    const std::string text = with(points).problems;
    const size_t begin = text.find("mixture_weight");
    return begin == std::string::npos ? text : text.substr(begin, text.rfind("\n1 problem") - begin);
  };
  const Read run = with("[{step: 0, weights: {a: 1, b: 3}}, {step: 5, weights: {a: 0, b: 1}}]");
  EXPECT_EQ(run.problems, "");
  EXPECT_EQ(run.notes, "");
  EXPECT_EQ(run.config.mixture_weight_schedule->points[1].step, 5);
  EXPECT_EQ(problem("[]"), "mixture_weight_schedule: has no points\n    give points: [{step: 0, weights: {...}}, ...]");
  EXPECT_EQ(problem("[{step: 3, weights: {a: 1, b: 3}}, {step: 3, weights: {a: 0, b: 1}}]"),
            "mixture_weight_schedule: step 3 comes after step 3\n    give the points by rising steps, each step once");
  EXPECT_EQ(problem("[{step: 3, weights: {a: 1}}]"),
            "mixture_weight_schedule: step 3: the weights' names are not the sources' names; without a weight: b\n    "
            "give each of these a weight: a, b");
  EXPECT_EQ(problem("[{step: 3, weights: {a: 0, b: 0}}]"),
            "mixture_weight_schedule: step 3: the weights add up to 0\n    give at least one source a weight above 0");
  EXPECT_NE(with("[{weights: {a: 1, b: 1}}]", "").notes.find("only a block mixture has weights"), std::string::npos);
}

TEST(MixtureConfig, FunctionsOverRowsAreFilesOfTemplatesOrOfPlugIns) {
  const auto problem = [](const std::string& yaml) { return read(yaml).problems; };
  EXPECT_NE(problem("informs: [{data_files: a.json, preprocessing_fn: rows.py}]")
                .find("run.yaml:1:50: informs[0].preprocessing_fn: 'rows.py' is neither a .jinja file nor a row "
                      "function of a plug-in; functions of Python cannot be called from YAML\n    give a template's "
                      "file, *.jinja, or "),
            std::string::npos);
  register_row_function("mixture_config_test", [](const Value& row) { return row; });
  EXPECT_EQ(problem("informs: [{data_files: a.json, preprocessing_fn: mixture_config_test}]"), "");
  EXPECT_EQ(problem("tokenize_callback: mixture_config_test"), "");
  EXPECT_NE(
      problem("tokenize_callback: other")
          .find("run.yaml:1:20: tokenize_callback: 'other' is neither a .jinja file nor a row function of a "
                "plug-in; functions of Python cannot be called from YAML\n    give a template's file, *.jinja, or "
                "a function of a plug-in; there are: "),
      std::string::npos);
}

TEST(MixtureConfig, WhatIsNotBuiltIsRefusedByName) {
  EXPECT_EQ(read("informs: [{type: dolly}]").problems,
            "run.yaml:1:18: informs[0].type: 'dolly' is neither a file type nor a dataset on the Hugging Face Hub\n    "
            "give arrow, csv, json, jsonl, parquet, tsv, txt or webdataset with data_files, or owner/name\n1 problem "
            "in run.yaml; "
            "nothing was run.");
}

TEST(MixtureConfig, AnInformWithAFieldOfImagesIsVisual) {
  const auto is_visual_inform = [](const std::string& inform) {
    return is_visual(read("informs: [{data_files: a.json" + inform + "}]").config.informs.at(0));
  };
  EXPECT_TRUE(is_visual_inform(", type: visual"));
  EXPECT_TRUE(is_visual_inform(", type: Image"));
  EXPECT_TRUE(is_visual_inform(", image_field: picture, image_size: [224, 224]"));
  EXPECT_FALSE(is_visual_inform(""));
  EXPECT_EQ(
      read("informs: [{data_files: a.json, pixel_field: x, image_size: [0, 2]}]").problems,
      "run.yaml:1:60: informs[0].image_size: [0, 2] is out of range\n    expected a list of 2, each item an integer of "
      "at least 1, or null (default null)\n1 problem in run.yaml; nothing was run.");
}

TEST(MixtureConfig, OnlyParquetIsCompressed) {
  EXPECT_EQ(read("save: {path: a, compression: lzma}").problems,
            "run.yaml:1:30: save.compression: unknown value 'lzma'\n    expected one of: snappy, gzip, zstd, "
            "lz4, brotli, none (default snappy)\n1 problem in run.yaml; nothing was run.");
  EXPECT_EQ(read("save: {path: a, compression: ZSTD}").config.save->compression, columnar::Compression::zstd);
}

TEST(MixtureConfig, WeightsMayNameSourcesThatAreOnlyEvaluatedOn) {
  EXPECT_EQ(read("{informs: [{data_files: a.json, name: a}, {data_files: b.json, name: b, split: test}], "
                 "block_mixture: true, mixture_weights: {a: 1, b: 1}}")
                .problems,
            "");
}

TEST(MixtureConfig, WhatIsSavedSaysWhereAndInWhichForm) {
  const std::string end = "\n1 problem in run.yaml; nothing was run.";
  EXPECT_EQ(read("save: {path: out, format: jsonl, max_shard_size: 2 MiB}").problems, "");
  EXPECT_EQ(read("save: {format: jsonl}").problems,
            "run.yaml:1:7: save.output_path: is missing\n    give the folder to write" + end);
  EXPECT_EQ(read("save: {path: out, format: json, max_shard_size: large}").problems,
            "run.yaml:1:49: save.max_shard_size: is not a size\n    write 500MB, 2GiB or a number of bytes" + end);
  EXPECT_EQ(read("save: {path: out, format: json, push_to_hub: true}").problems,
            "run.yaml:1:46: save.push_to_hub: needs the name of a repository\n    give hub_repo_id: owner/name" + end);
}

TEST(MixtureConfig, SizesAreInPowersOfAThousandOrOf1024) {
  const auto bytes = [](std::variant<std::string, int64_t> size) {
    SaveConfig save;
    save.max_shard_size = std::move(size);
    return save.shard_bytes();
  };
  EXPECT_EQ(bytes("500MB"), 500'000'000);
  EXPECT_EQ(bytes("1.5 GiB"), 1'610'612'736);
  EXPECT_EQ(bytes("7kb"), 7000);
  EXPECT_EQ(bytes("12"), 12);
  EXPECT_EQ(bytes("12B"), 12);
  EXPECT_EQ(bytes(int64_t{9}), 9);
  for (const char* none : {"", "MB", "5XB", "5M", "5MiBs", "-1MB", "0"}) EXPECT_EQ(bytes(none), std::nullopt) << none;
  EXPECT_EQ(bytes(int64_t{0}), std::nullopt);
}

TEST(MixtureConfig, AMissingFileListIsNamed) {
  EXPECT_EQ(read("informs: [{type: json}]").problems,
            "run.yaml:1:11: informs[0].data_files: is missing\n    give a path or a pattern such as data/*.jsonl\n"
            "1 problem in run.yaml; nothing was run.");
}

}  // namespace
}  // namespace easydel::data
