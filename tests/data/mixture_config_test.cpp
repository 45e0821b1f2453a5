#include "easydel/data/mixture_config.h"

#include <gtest/gtest.h>

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

TEST(MixtureConfig, WhatIsNotBuiltIsRefusedByName) {
  EXPECT_EQ(read("informs: [{type: dolly}]").problems,
            "run.yaml:1:18: informs[0].type: 'dolly' is neither a file type nor a dataset on the Hugging Face Hub\n    "
            "give arrow, csv, json, jsonl, parquet, tsv, txt or webdataset with data_files, or owner/name\n1 problem "
            "in run.yaml; "
            "nothing was run.");
  EXPECT_EQ(read("informs: [{type: visual, data_files: a.json}]").problems,
            "run.yaml:1:18: informs[0].type: training on images is not built yet\n    text rows are: arrow, csv, json, "
            "jsonl, "
            "parquet, tsv, txt or webdataset\n"
            "1 problem in run.yaml; nothing was run.");
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
