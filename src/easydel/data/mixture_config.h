// The `mixture:` section: which data, how mixed, tokenised and packed. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "easydel/columnar/columnar.h"
#include "easydel/config/fields.h"
#include "easydel/data/epoch_order.h"
#include "easydel/data/learn_rules.h"
#include "easydel/data/packing.h"
#include "easydel/data/row_kinds.h"
#include "easydel/data/weight_schedule_config.h"

namespace easydel::columnar {

constexpr auto choices(Compression) {
  using enum Compression;
  return std::array{config::Choice{snappy, "snappy"}, config::Choice{gzip, "gzip"},     config::Choice{zstd, "zstd"},
                    config::Choice{lz4, "lz4"},       config::Choice{brotli, "brotli"}, config::Choice{none, "none"}};
}

}  // namespace easydel::columnar

namespace easydel::data {

constexpr auto choices(SampleBy) {
  using enum SampleBy;
  return std::array{config::Choice{line, "line"}, config::Choice{paragraph, "paragraph"},
                    config::Choice{document, "document"}};
}
constexpr auto choices(RowKind) {
  using enum RowKind;
  return std::array{config::Choice{text, "text"},
                    config::Choice{messages, "messages"},
                    config::Choice{prompt_completion, "prompt_completion"},
                    config::Choice{preference, "preference"},
                    config::Choice{prompt, "prompt"},
                    config::Choice{unpaired, "unpaired"},
                    config::Choice{stepwise, "stepwise"},
                    config::Choice{contrast, "contrast"},
                    config::Choice{labelled, "labelled"},
                    config::Choice{tokens, "tokens"}};
}
constexpr auto choices(TrainOnTurns) {
  using enum TrainOnTurns;
  return std::array{config::Choice{all, "all"}, config::Choice{last, "last"}};
}
constexpr auto choices(TrainOnEos) {
  using enum TrainOnEos;
  return std::array{config::Choice{turn, "turn"}, config::Choice{all, "all"}, config::Choice{last, "last"},
                    config::Choice{none, "none"}};
}
constexpr auto choices(StopStrategy) {
  using enum StopStrategy;
  return std::array{config::Choice{restart, "restart"}, config::Choice{first_exhausted, "first_exhausted"},
                    config::Choice{longest, "longest"}.also("all_exhausted")};
}
constexpr auto choices(Packing) {
  using enum Packing;
  return std::array{config::Choice{none, "none"},
                    config::Choice{greedy, "greedy"},
                    config::Choice{bfd, "bfd"}.also("best_fit"),
                    config::Choice{bfd_split, "bfd_split"},
                    config::Choice{first_fit, "first_fit"},
                    config::Choice{wrapped, "wrapped"}};
}

struct InformConfig {
  std::optional<std::string> type;
  config::Many<std::string> data_files;
  std::optional<std::string> name;
  std::string split = "train";
  std::optional<std::string> dataset_split_name;
  std::optional<std::string> content_field;
  std::vector<std::string> additional_fields;
  std::map<std::string, std::string> format_fields;
  std::optional<int64_t> num_rows;
  SampleBy sample_by = SampleBy::line;
  std::optional<RowKind> row_type;
  std::optional<std::string> pixel_field;
  std::optional<std::array<int64_t, 2>> image_size;
  std::optional<std::string> format_callback, preprocessing_fn;
  std::optional<std::string> format;
  std::map<std::string, std::string> columns;
  std::map<std::string, config::Many<std::string>> roles;
  std::map<std::string, std::string> message_fields;
  std::optional<std::string> filter;
  std::map<std::string, std::string> map;
  std::vector<std::string> roles_to_train;
  std::optional<TrainOnTurns> train_on_turns;
  std::optional<TrainOnEos> train_on_eos;
  std::optional<std::string> weight_field;
  std::map<std::string, Value> chat_template_args;

  static constexpr auto doc = "One source of rows.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::type>(
            "arrow, csv, json, jsonl, parquet, tsv, txt or webdataset; null: from the file's extension. visual: by the "
            "extension, and the rows have images. Or a dataset of the hub, owner/name, without data_files."),
        field<&C::data_files>("A path or pattern (*, ?, [a-z], {a,b}, **), an address (https://..., "
                              "hf://datasets/owner/name/file), or a list of them."),
        field<&C::name>("Name in mixture_weights; null: the name of its first file."),
        field<&C::split>(
            "train, or another name for data that is only used for evaluation. Also a slice, or several joined "
            "by +, with the rounding of `datasets`: train[:10%], train[100:200]+validation."),
        field<&C::dataset_split_name>("For a dataset of the hub: the configuration of this name in its card "
                                      "(README.md), else the split; null: the defaults."),
        field<&C::content_field>("Field with the text, the conversation, or the prompt of a pair; null: by the "
                                 "standard names (messages, prompt, completion, chosen, rejected, text), then content.",
                                 alias("text_field")),
        field<&C::additional_fields>("Other fields that every row must have."),
        field<&C::format_fields>(
            "Fields to rename, as old: new. A dot goes into maps and lists of maps: messages.from: "
            "role."),
        field<&C::num_rows>("Use at most this many rows.", at_least(1)),
        field<&C::sample_by>("Unit of a text file that becomes a row."),
        field<&C::row_type>("Kind of the rows; null: detected."),
        field<&C::pixel_field>(
            "Field with the images: a path from the file's folder, the image's bytes, {bytes, path}, "
            "base64, or a list of these. null with type: visual: mixture.image_target_field, image "
            "or images, in a tar file jpg, jpeg, png or webp. Training on images is not built yet.",
            alias("image_field")),
        field<&C::image_size>("Height and width that images are resized to; null: as they are.", at_least(1)),
        field<&C::preprocessing_fn>("File of a Jinja template, *.jinja, that renders the row's fields as one JSON "
                                    "object, the new row; or the name of a plug-in's row function. It is the first "
                                    "step."),
        field<&C::format_callback>("The same, after preprocessing_fn."),
        field<&C::filter>("A Jinja expression over the row's fields; rows where it is false are left out: \"{{ text | "
                          "length > 200 }}\"."),
        field<&C::map>("Fields to set, as name: Jinja template over the row's fields. A template that is one {{ "
                       "expression }} keeps the value's type; every other one gives a text."),
        field<&C::format>(
            "Form of the rows: alpaca, dolly, hh, kto, openai, segments or sharegpt; null: by the names of "
            "their fields."),
        field<&C::columns>("Names of the format's fields in these rows, as format's name: field."),
        field<&C::roles>("Roles of messages with other names, as theirs: ours, or as ours: [theirs, ...]."),
        field<&C::message_fields>(
            "Fields of messages with other names, as ours: theirs: {role: from, content: value}."),
        field<&C::roles_to_train>(
            "Learn only what these roles say; empty: what trainer.assistant_only_loss says, or the "
            "assistant's turns if train_on_turns or train_on_eos is given."),
        field<&C::train_on_turns>("Which of the learned roles' turns are learned: all, or only the last one."),
        field<&C::train_on_eos>("Which end tokens are learned: of each learned turn, of all turns, of the last learned "
                                "turn, or none; null: of each learned turn."),
        field<&C::weight_field>("Field with the row's weight in the loss: a number from 0."),
        field<&C::chat_template_args>("Variables of the chat template, for example enable_thinking: false; a row's "
                                      "chat_template_kwargs come first."),
    };
  }
  void settle(config::Keys& keys);
};

struct TokenizationConfig {
  std::optional<std::string> tokenizer;
  std::optional<int64_t> max_length;
  bool truncation = true;
  std::variant<bool, std::string> padding = false;
  std::optional<bool> add_special_tokens;
  bool return_attention_mask = true;
  std::optional<std::string> text_field;
  std::string output_field = "tokens";
  std::optional<int64_t> num_proc;
  bool batched = true;
  int64_t batch_size = 1000;
  Value remove_columns;
  bool keep_in_memory = false;

  static constexpr auto doc = "How texts become tokens.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto flat = no_effect("batches are flat lists of tokens without padding");
    constexpr auto streamed = no_effect("rows are tokenized as they are read");
    return std::array{
        field<&C::tokenizer>(
            "Folder or Hub name of another tokenizer than the model's: the same as model.tokenizer, which it sets. Its "
            "vocabulary is the model's or a smaller one."),
        field<&C::max_length>("The same as trainer.max_length; the smaller one counts.", at_least(1)),
        field<&C::truncation>("true: truncate rows that are too long, and count them; false: refuse them."),
        field<&C::padding>("Padding.", flat),
        field<&C::add_special_tokens>(
            "Whether the tokenizer adds BOS and other special tokens to plain texts; null: yes."),
        field<&C::return_attention_mask>("Whether mixture.save writes the column attention_mask."),
        field<&C::text_field>("The same as text_target_field."),
        field<&C::output_field>("Name of the column of tokens that mixture.save writes."),
        field<&C::num_proc>("Threads that prepare rows; null: one for each core.", at_least(1)),
        field<&C::batched>("Rows by batches.", streamed),
        field<&C::batch_size>("Rows that are prepared together. Changes no result.", at_least(1)),
        field<&C::remove_columns>("Columns to drop.", streamed),
        field<&C::keep_in_memory>("true: keep all tokens in memory, without a token store."),
    };
  }
};

enum class OnBadRow : uint8_t { error, skip };
constexpr auto choices(OnBadRow) {
  using enum OnBadRow;
  return std::array{config::Choice{error, "error"}, config::Choice{skip, "skip"}};
}

enum class Deduplicate : uint8_t { none, exact };
constexpr auto choices(Deduplicate) {
  using enum Deduplicate;
  return std::array{config::Choice{none, "none"}, config::Choice{exact, "exact"}};
}

struct DecontaminateConfig {
  int64_t ngram = 13;
  bool drop = false;

  static constexpr auto doc = "Find rows that repeat evaluation data.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::ngram>("Words in a row that a training row and a row of an evaluation inform have in common.",
                         at_least(1)),
        field<&C::drop>("Leave such rows out; false: only count them."),
    };
  }
};

enum class SaveFormat : uint8_t { parquet, arrow, json, jsonl, csv };
constexpr auto choices(SaveFormat) {
  using enum SaveFormat;
  return std::array{config::Choice{parquet, "parquet"}, config::Choice{arrow, "arrow"}, config::Choice{json, "json"},
                    config::Choice{jsonl, "jsonl"}, config::Choice{csv, "csv"}};
}

enum class SaveWhat : uint8_t { examples, rows };
constexpr auto choices(SaveWhat) {
  using enum SaveWhat;
  return std::array{config::Choice{examples, "examples"}, config::Choice{rows, "rows"}};
}

struct SaveConfig {
  std::optional<std::string> output_path;
  SaveWhat what = SaveWhat::examples;
  SaveFormat format = SaveFormat::parquet;
  std::optional<int64_t> num_shards;
  columnar::Compression compression = columnar::Compression::snappy;
  std::variant<std::string, int64_t> max_shard_size = "500MB";
  bool overwrite = false;
  bool push_to_hub = false;
  std::optional<std::string> hub_repo_id;
  bool hub_private = false;
  std::optional<std::string> hub_token;

  static constexpr auto doc = "Write the data that are trained on, before the first step.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::output_path>("Folder to write into.", alias("path")),
        field<&C::what>("examples: the tokens of each example; rows: the rows as the informs' functions, filters and "
                        "formats make them, before they become tokens."),
        field<&C::format>("parquet, arrow (what `datasets` loads from the disk), json (a list), jsonl (a row a line), "
                          "or csv (rows without lists and maps)."),
        field<&C::num_shards>("Number of files; null: from max_shard_size.", at_least(1)),
        field<&C::compression>("Compression of parquet files."),
        field<&C::max_shard_size>("Largest size of a file: a number of bytes, or a number with KB, MB, GB, TB (powers "
                                  "of 1000) or KiB, MiB, GiB, TiB."),
        field<&C::overwrite>("Whether to write into a folder that already exists."),
        field<&C::push_to_hub>("Also upload the folder to the hub."),
        field<&C::hub_repo_id>("Repository of the dataset, owner/name."),
        field<&C::hub_private>("If this run creates the repository, make it private."),
        field<&C::hub_token>("A token with write access; null: the one in HF_TOKEN."),
    };
  }
  void settle(config::Keys& keys);
  // Of max_shard_size; nullopt: it says no size.
  std::optional<int64_t> shard_bytes() const;
};

struct MixtureConfig {
  std::vector<InformConfig> informs;
  std::vector<InformConfig> evaluation;
  std::string text_target_field = "text";
  std::string image_target_field = "image";
  std::optional<int64_t> batch_size;
  std::optional<int64_t> seed;
  bool pack_tokens = false;
  bool pack_on_the_fly = false;
  std::optional<int64_t> pack_seq_length;
  std::optional<int64_t> pack_eos_token_id;
  bool pack_shuffle = true;
  std::optional<int64_t> pack_window;
  bool block_mixture = false;
  int64_t mixture_block_size = 2048;
  StopStrategy stop_strategy = StopStrategy::restart;
  std::map<std::string, double> mixture_weights;
  std::optional<WeightScheduleConfig> mixture_weight_schedule;
  OnBadRow on_bad_row = OnBadRow::error;
  std::optional<int64_t> max_bad_rows;
  Deduplicate deduplicate = Deduplicate::none;
  std::optional<DecontaminateConfig> decontaminate;
  TokenizationConfig tokenization;
  std::optional<SaveConfig> save;
  std::string cache_dir = "~/.cache/easydel";
  std::optional<int64_t> cache_limit;
  int64_t cache_min_bytes = int64_t{64} << 20;
  bool streaming = true;
  int64_t shuffle_buffer_size = 1000;
  int64_t pack_shuffle_buffer_factor = 16;
  std::string tokens_field_name = "tokens";
  Value dask_storage_options;
  std::optional<std::string> tokenize_callback;
  std::optional<int64_t> prefetch_workers, prefetch_buffer_size;
  int64_t cloud_max_retries = 3;
  double cloud_retry_delay = 0.1;
  bool cache_remote_files = true;
  int64_t cache_expiry_seconds = 86400;
  bool use_sharded_source = true;
  bool use_fast_loader = true;
  int64_t num_workers = 4, prefetch_size = 10;
  bool enable_caching = true;

  static constexpr auto doc = "The data: sources, mixing, tokenization, packing.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    constexpr auto loader = no_effect("there is one loader");
    return std::array{
        field<&C::informs>("The sources."),
        field<&C::evaluation>(
            "Sources that are only used for evaluation, in addition to the informs whose split is not train."),
        field<&C::text_target_field>("Field of the row that holds the text."),
        field<&C::image_target_field>("Field of the row that holds the image, where an inform gives no pixel_field."),
        field<&C::batch_size>("The same as trainer.total_batch_size; give one of them.", at_least(1)),
        field<&C::seed>("Seed of the mixture and of packing; null: trainer.shuffle_seed_train.", at_least(0)),
        field<&C::pack_tokens>("Pack several documents into one row of full length, each attending only to itself."),
        field<&C::pack_on_the_fly>("The same as pack_tokens."),
        field<&C::pack_seq_length>("Length of a packed row in tokens; null: trainer.max_length.", at_least(2)),
        field<&C::pack_eos_token_id>("Id of the token that ends each document; null: the tokenizer's EOS token.",
                                     at_least(0)),
        field<&C::pack_shuffle>("Shuffle documents before they are packed."),
        field<&C::pack_window>(
            "Documents that are packed together. More of them fill rows better and cost memory; null: 1048576, or "
            "16384 "
            "where rows are read while the run goes on (enable_caching: false), whose tokens are in memory.",
            at_least(1)),
        field<&C::block_mixture>(
            "Mix sources in blocks with fixed counts; false: one source after the other, then shuffled."),
        field<&C::mixture_block_size>("Rows in a block.", at_least(1)),
        field<&C::stop_strategy>("When an epoch of a block mixture ends: restart sources until each was used once, at "
                                 "the first exhausted source, or after the longest."),
        field<&C::mixture_weights>("Share of each source, by its name; empty: equal shares.", at_least(0)),
        field<&C::mixture_weight_schedule>(
            "Shares that change while the run goes on, instead of mixture_weights. The run is one epoch then: it needs "
            "trainer.max_training_steps, and sources restart when they are exhausted. A block has the shares of the "
            "step at which it begins."),
        field<&C::on_bad_row>("What to do with a row that cannot be read or prepared: error ends the run; skip leaves "
                              "it out, names it in the log and counts it in state.json. `easydel data check` lists "
                              "all bad rows."),
        field<&C::max_bad_rows>("With on_bad_row: skip: more bad rows than this end the run; null: any number.",
                                at_least(0)),
        field<&C::deduplicate>("exact: leave out training rows whose words are those of an earlier row, in any inform. "
                               "Costs 16 bytes of memory a row."),
        field<&C::decontaminate>("Find training rows that repeat rows of the evaluation informs; null: do not look."),
        field<&C::tokenization>("How texts become tokens."),
        field<&C::save>("Write the processed data; null: no."),
        field<&C::cache_dir>("Folder of the token stores: data that are tokenized once and mapped by later runs."),
        field<&C::cache_limit>("Bytes of all token stores together; those that were not used for the longest time are "
                               "removed. null: any number.",
                               at_least(0)),
        field<&C::cache_min_bytes>("Bytes of input from which on a token store is made; less is tokenized by every "
                                   "run, in memory.",
                                   at_least(0)),
        field<&C::streaming>("false: keep all tokens in memory, without a token store."),
        field<&C::shuffle_buffer_size>(
            "Rows in a window of the shuffle, at least, where rows are read while the run goes "
            "on (enable_caching: false). All other data are shuffled as a whole.",
            at_least(1)),
        field<&C::pack_shuffle_buffer_factor>("Size of the shuffle buffer in batches.",
                                              no_effect("all documents are shuffled before they are packed")),
        field<&C::tokens_field_name>("Field with the tokens of rows that are tokenized already; input_ids is "
                                     "also taken."),
        field<&C::dask_storage_options>(
            "Options of remote files, in fsspec's words: key, secret, token, endpoint_url, anon and client_kwargs: "
            "{region_name} of s3:// and gs://; token is sent to the servers of https:// "
            "addresses."),
        field<&C::tokenize_callback>("Name of a plug-in's row function, or the file of a template, *.jinja, that makes "
                                     "rows of tokens; it is the last step of every inform."),
        field<&C::prefetch_workers>("Threads that read and prepare rows while the run goes on (enable_caching: false); "
                                    "null: one for each core but one. Changes no result.",
                                    at_least(1)),
        field<&C::prefetch_buffer_size>("Updates that they prepare before they are needed; null: 4. Changes no result.",
                                        at_least(1)),
        field<&C::cloud_max_retries>("How often a remote file is asked for again after the network failed.",
                                     at_least(0)),
        field<&C::cloud_retry_delay>("Seconds before the first of these retries; each further one waits twice as long.",
                                     at_least(0)),
        field<&C::cache_remote_files>("Keep copies of remote files in cache_dir; false: read them by ranges and keep "
                                      "nothing. Every pass over the data then reads them anew."),
        field<&C::cache_expiry_seconds>("How long a copy is used before the server is asked whether its file has "
                                        "changed.",
                                        at_least(0)),
        field<&C::use_sharded_source>("Upstream's newer loader.", loader),
        field<&C::use_fast_loader>("Upstream's fast loader.", loader),
        field<&C::num_workers>("Processes that load.",
                               no_effect("threads read rows; prefetch_workers and tokenization.num_proc say how many")),
        field<&C::prefetch_size>("Batches read ahead.", no_effect("prefetch_buffer_size says how many")),
        field<&C::enable_caching>(
            "Keep tokens in a token store for later runs; false: input of cache_min_bytes or more "
            "is read and tokenized while the run goes on, and nothing is kept."),
    };
  }
  void settle(config::Keys& keys);
};

// Whether its rows have images: it has a pixel_field, or is of type visual.
bool is_visual(const InformConfig& inform);
// What mixture_weights calls the source: its name, else its first file's, else its type.
std::string name_of(const InformConfig& inform);
// Like name_of, with "-1", "-2" ... appended to duplicates.
std::vector<std::string> names_of(const std::vector<InformConfig>& informs);
// The informs to train on (split train), and those to evaluate on.
std::vector<InformConfig> training_informs(const MixtureConfig& mixture);
std::vector<InformConfig> evaluation_informs(const MixtureConfig& mixture);

}  // namespace easydel::data
