// Adapters of one model that are loaded, replaced and removed while it runs. A pass takes the adapters of its sequences
// (nn::Stream::sequence_adapters) as they are when it begins.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/models/model.h"
#include "easydel/nn/adapter_slots.h"

namespace easydel::models {

// All functions may be called by any thread, also while passes run. What a pass has taken stays valid until it ends.
class Adapters {
 public:
  using Loaded = std::shared_ptr<const nn::LoadedAdapter>;
  struct Info {
    std::string name;
    uint64_t version = 0;          // nn::LoadedAdapter::version
    std::filesystem::path folder;  // empty: a sum
    int64_t r = 0;                 // the largest of its layers
  };

  // UserError: the model was loaded with an adapter.
  explicit Adapters(std::shared_ptr<const Model> model);

  // Called with an adapter that was read, before its name is known. What it throws comes back, and nothing changes.
  using Confirm = std::function<void(const Loaded& loaded)>;
  // Reads a folder that PEFT or easydel saved. With several ranks each reads its part, and all of them have to.
  // UserError, and nothing changes: the name is taken, the folder cannot be read or does not fit the model, or it
  // changes more than linear layers and embeddings (biases, norms), or it trains the output layer in full.
  Loaded add(const std::string& name, const std::filesystem::path& folder, const Confirm& confirm = {});
  // The same where the name may be taken; sequences that begin later have the new one.
  Loaded replace(const std::string& name, const std::filesystem::path& folder, const Confirm& confirm = {});
  // A weighted sum of adapters that are loaded; later changes of those do not change it. UserError, and nothing
  // changes: the name is taken, there is none of a share's name, one has more than A and B (DoRA, lora_bias,
  // modules_to_save), or `linear` adds adapters of different ranks. Collective.
  Loaded add_sum(const std::string& name, AdapterSum::Kind kind, const std::vector<AdapterSum::Share>& shares,
                 uint64_t version = next_version());
  // The errors of add_sum(), by this rank alone.
  void check_sum(const std::string& name, AdapterSum::Kind kind, const std::vector<AdapterSum::Share>& shares) const {
    parts_of_sum(name, kind, shares);
  }
  // A version that no adapter of this process has.
  static uint64_t next_version();
  // UserError: there is none of this name.
  void remove(std::string_view name);

  Loaded find(std::string_view name) const;  // null: there is none of this name
  // UserError `where`, with the names that there are.
  Loaded get(std::string_view name, const std::string& where) const;
  std::vector<Info> list() const;  // by name

  const Model& model() const { return *model_; }

 private:
  struct Parts;  // the parameters of an adapter, and its layers
  struct Held {
    Loaded adapter;
    Info info;
    std::shared_ptr<Parts> parts;
  };
  std::shared_ptr<Parts> read_parts(const std::filesystem::path& folder) const;
  struct Share {
    std::shared_ptr<const Parts> parts;
    double weight;
  };
  Held hold(const std::string& name, const std::filesystem::path& folder, std::shared_ptr<Parts> parts,
            uint64_t version) const;
  std::vector<Share> parts_of_sum(const std::string& name, AdapterSum::Kind kind,
                                  const std::vector<AdapterSum::Share>& shares) const;
  Held load(const std::string& name, const std::filesystem::path& folder) const;
  Loaded insert(Held held);
  Held held(std::string_view name, const std::string& where) const;
  void refuse_taken(const std::string& name) const;  // if it is
  std::string names() const;

  std::shared_ptr<const Model> model_;
  mutable std::mutex mutex_;
  std::map<std::string, Held, std::less<>> held_;
};

}  // namespace easydel::models
