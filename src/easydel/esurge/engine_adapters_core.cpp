// Adapters of the engine's requests.
#include <algorithm>
#include <bit>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/log.h"
#include "easydel/base/sha256.h"
#include "easydel/esurge/adapter_files.h"
#include "easydel/esurge/step_engine_parts.h"

namespace easydel::esurge {
namespace {

// Read from the same tokenizer.json, with the same template, and adding the same tokens. Others are taken for different
// ones, which gives the same answers.
bool is_same(const text::Tokenizer& a, const text::Tokenizer& b) {
  const auto vocabulary = [](const text::Tokenizer& of) {
    for (const std::filesystem::path& file : of.files())
      if (file.filename() == "tokenizer.json") return files::read(file);
    return std::string();
  };
  const std::string file = vocabulary(a);
  return !file.empty() && file == vocabulary(b) && a.chat_template() == b.chat_template() &&
         a.encode("a") == b.encode("a");
}

}  // namespace

models::Adapters& StepEngine::Parts::adapters_of_model() {
  const std::lock_guard lock(mutex);
  if (!setup.model) refuse("adapter", "the engine has let its model go", "update its weights before");
  if (!adapters) adapters = std::make_unique<models::Adapters>(setup.model);
  return *adapters;
}

StepEngine::Parts::ChosenAdapter StepEngine::Parts::choose_adapter(const std::optional<std::string>& name) const {
  ChosenAdapter out{nullptr, {setup.tokenizer, preparer}};
  if (!name) return out;
  const std::lock_guard lock(mutex);
  if (!adapters) refuse("adapter", str("'", *name, "' is not loaded"), "load it, or leave the key out");
  out.adapter = adapters->get(*name, "adapter");
  const auto own = adapter_texts.find(out.adapter->version());
  if (own != adapter_texts.end()) out.text = own->second;
  return out;
}

void StepEngine::Parts::use_adapter(LiveRequest& request, SchedulerRequest& scheduled,
                                    std::shared_ptr<const nn::LoadedAdapter> adapter) const {
  if (!adapter) return;
  request.adapter = std::move(adapter);
  scheduled.root.adapter = request.adapter->name();
  scheduled.root.adapter_version = int64_t(request.adapter->version());
  if (request.fingerprint.empty()) return;
  const auto digest = adapter_digests.find(request.adapter->version());
  request.fingerprint +=
      digest != adapter_digests.end() ? str("+", digest->second) : str("+version_", request.adapter->version());
}

std::optional<StepEngine::Parts::AdapterText> StepEngine::Parts::adapter_text(
    const std::string& name, const std::filesystem::path& folder) const {
  if (!text::Tokenizer::exists(folder)) return std::nullopt;
  std::optional<std::string> chat_template = setup.chat_template;
  if (!chat_template && setup.tokenizer && setup.tokenizer->chat_template_is_given())
    chat_template = setup.tokenizer->chat_template();
  auto own = text::Tokenizer::load(folder, chat_template);
  if (setup.tokenizer && is_same(*own, *setup.tokenizer)) return std::nullopt;
  if (const int64_t limit = own->id_limit(); limit > info.vocabulary)
    log::warning("esurge: the tokenizer of the adapter '", name, "' has ", limit - info.vocabulary,
                 " ids more than the model's vocabulary, such as that of '", own->token_of(TokenId(limit - 1)),
                 "'; requests that need them are refused");
  return AdapterText{own, make_preparer(own)};
}

void StepEngine::Parts::load_on_ranks(const models::Adapters::Loaded& loaded, const std::filesystem::path& folder,
                                      const std::string& digest) const {
  // Ranks that have it forget it if others cannot load it, because it is gone here then.
  setup.ranks->know_adapter(loaded->version(), loaded);
  if (const std::string why = setup.ranks->give(LoadAdapter{loaded->version(), folder.string(), digest}); !why.empty())
    refuse("adapters." + loaded->name(), why, "every rank reads the folder itself: give all of them the same one");
}

void StepEngine::Parts::refuse_adapters() const {
  const std::lock_guard lock(mutex);
  if ((adapters && !adapters->list().empty()) ||
      std::ranges::any_of(live, [](const auto& entry) { return entry.second->adapter != nullptr; }))
    refuse("model", "another model cannot take over while adapters of the present one are loaded or used",
           "unload them first, or change the weights in place");
}

int64_t StepEngine::load_adapter(const std::string& name, const std::filesystem::path& folder, bool replace) {
  Parts& p = *parts_;
  models::Adapters& adapters = p.adapters_of_model();
  auto own_text = p.adapter_text(name, folder);
  const models::Adapters::Loaded before = adapters.find(name);
  std::string digest;
  const auto confirm = [&](const models::Adapters::Loaded& loaded) {
    digest = adapter_files_digest(folder);
    if (p.setup.ranks) p.load_on_ranks(loaded, folder, digest);
  };
  const models::Adapters::Loaded loaded =
      replace ? adapters.replace(name, folder, confirm) : adapters.add(name, folder, confirm);
  const std::lock_guard lock(p.mutex);
  p.adapter_digests[loaded->version()] = digest.substr(0, 16);
  if (before) p.adapter_texts.erase(before->version());
  if (own_text) p.adapter_texts[loaded->version()] = std::move(*own_text);
  return int64_t(loaded->version());
}

int64_t StepEngine::add_adapter_sum(const std::string& name, models::AdapterSum::Kind kind,
                                    const std::vector<models::AdapterSum::Share>& shares) {
  Parts& p = *parts_;
  models::Adapters& adapters = p.adapters_of_model();
  adapters.check_sum(name, kind, shares);
  const uint64_t version = models::Adapters::next_version();
  AddAdapterSum order{version, kind == models::AdapterSum::Kind::linear, {}};
  std::string content = order.linear ? "linear" : "cat";
  {
    const std::lock_guard lock(p.mutex);
    for (const auto& [part, weight] : shares) {
      order.shares.emplace_back(adapters.get(part, "adapters." + name)->version(), weight);
      content += str(" ", p.adapter_digests[order.shares.back().first], " ", std::bit_cast<uint64_t>(weight));
    }
  }
  models::Adapters::Loaded loaded;
  const auto add = [&] { loaded = adapters.add_sum(name, kind, shares, version); };
  if (!p.setup.ranks) {
    add();
  } else if (const std::string why = p.setup.ranks->give(order, add); !why.empty()) {
    p.setup.ranks->know_adapter(version, loaded);
    adapters.remove(name);
    refuse("adapters." + name, why);
  } else {
    p.setup.ranks->know_adapter(version, loaded);
  }
  const std::lock_guard lock(p.mutex);
  p.adapter_digests[version] = files::sha256(content).substr(0, 16);
  return int64_t(version);
}

void StepEngine::unload_adapter(const std::string& name) {
  models::Adapters& adapters = parts_->adapters_of_model();
  const models::Adapters::Loaded before = adapters.find(name);
  adapters.remove(name);
  const std::lock_guard lock(parts_->mutex);
  if (before) parts_->adapter_texts.erase(before->version());
}

std::vector<AdapterInfo> StepEngine::adapters() const {
  const Parts& p = *parts_;
  const std::lock_guard lock(p.mutex);
  std::vector<AdapterInfo> out;
  if (!p.adapters) return out;
  for (const models::Adapters::Info& one : p.adapters->list()) {
    AdapterInfo& info = out.emplace_back(AdapterInfo{one.name, one.folder, int64_t(one.version), one.r, 0, nullptr});
    if (const auto own = p.adapter_texts.find(one.version); own != p.adapter_texts.end())
      info.tokenizer = own->second.tokenizer;
    for (const auto& [id, request] : p.live)
      info.requests += request->adapter && request->adapter->version() == one.version;
  }
  return out;
}

}  // namespace easydel::esurge
