// `easydel data prepare` and `easydel data cache`: token stores; `easydel data save`.
#include "easydel/base/byte_count.h"
#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/base/text_table.h"
#include "easydel/cli/commands.h"
#include "easydel/cli/data.h"
#include "easydel/data/saved_rows.h"
#include "easydel/data/token_store.h"
#include "easydel/hub/settings.h"

namespace easydel::cli {

int run_data_prepare(const DataCommand& command) {
  const data::RunData data = open_run_data(command);
  if (!data.training) refuse("mixture.informs", "there is no data to train on", "give an inform with split: train");
  for (std::optional<data::DatasetOptions> options : {data.training, data.evaluation}) {
    if (!options) continue;
    if (!data.not_stored.empty())
      refuse("mixture", "the run keeps its tokens in memory, because " + data.not_stored,
             "run it without `easydel data prepare`");
    if (!options->store)
      refuse("mixture", "the run keeps its tokens in memory",
             "set enable_caching: true and streaming: true, and leave tokenization.keep_in_memory out");
    options->store->min_bytes = 0;
    const data::Dataset dataset = data::Dataset::build(*options, data.prepare);
    print(str((options->store->cache / data::store_key(*options)).string(), "\t",
              counted(dataset.examples_count(), "example"), "\t", counted(dataset.tokens(), "token"), "\n"));
  }
  return 0;
}

int run_data_save(const DataCommand& command) {
  const data::RunData data = open_run_data(command);
  if (!data.training) refuse("mixture.informs", "there is no data to train on", "give an inform with split: train");
  if (!data.mixture.save)
    refuse("mixture.save", "is missing", "say where and what to save: {output_path: saved, what: rows}");
  const std::vector<std::filesystem::path> files =
      data.mixture.save->what == data::SaveWhat::rows
          ? data::save_rows("mixture.save", *data.training, data.prepare, data.mixture, data.saved.method)
          : data::save_dataset("mixture.save", data::Dataset::build(*data.training, data.prepare), data.mixture,
                               data.saved);
  for (const std::filesystem::path& file : files) print(file.string() + "\n");
  return 0;
}

int run_data_cache(const DataCommand& command) {
  const std::filesystem::path cache = hub::expand_home(command.cache);
  const auto named = [&](const std::string& key) { return command.store.empty() || command.store == key; };
  std::vector<std::vector<std::string>> table{{"store", "examples", "tokens", "size", "last used", "of"}};
  std::string defects;
  bool found = false;
  for (const data::StoredTokens& store : data::list_stores(cache)) {
    if (!named(store.key)) continue;
    found = true;
    if (command.remove) data::remove_store(store.folder);
    if (command.verify)
      if (const std::string defect = data::store_defect(store.folder); !defect.empty())
        defects += store.folder.string() + ": " + defect + "\n";
    table.push_back({store.key, store.is_whole ? std::to_string(store.examples) : "not finished",
                     std::to_string(store.tokens), bytes_text(store.bytes), store.used, store.inputs});
  }
  if (!found && !command.store.empty())
    refuse("easydel data cache", "there is no store '" + command.store + "' in " + cache.string(),
           "easydel data cache lists those that are there");
  if (command.remove)
    print(str(counted(int64_t(table.size()) - 1, "store"), " removed\n"));
  else
    print(found ? text_table(table) : "no token stores in " + cache.string() + "\n");
  print(defects);
  return defects.empty() ? 0 : 1;
}

}  // namespace easydel::cli
