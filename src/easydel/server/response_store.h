// Responses that were stored, so that they can be read and gone on with. In memory, bounded, and apart for each key.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::server {

struct StoredResponse {
  std::string id = {}, owner = {};  // owner: the key's id; empty: there are no keys
  std::string object = {};          // as the client gets it
  std::string previous = {}, conversation = {};
  std::string input = {}, output = {};  // items, as JSON lists
};

// Thread-safe. What belongs to another owner is as if it did not exist.
class ResponseStore {
 public:
  struct Limits {
    size_t responses = 10000, conversations = 1000;
    size_t bytes = size_t(256) << 20;  // of all of them
  };
  ResponseStore() : ResponseStore(Limits()) {}
  explicit ResponseStore(Limits limits) : limits_(limits) {}

  // A response that is being made: cancel() calls `abort` until put() replaces it. `abort` must not call the store.
  void begin(StoredResponse response, std::function<void()> abort);
  // Replaces a response that was begun, unless it was deleted meanwhile; `begun` false: adds one. Beyond the limits
  // those that were used least recently go; one that is too large alone is not kept. Its items are added to its
  // conversation.
  void put(StoredResponse response, bool begun = false);
  void forget(const std::string& id);  // of a response that was begun and is not to be kept

  std::optional<StoredResponse> find(const std::string& id, const std::string& owner);
  bool erase(const std::string& id, const std::string& owner);
  // Ends a response that is being made. False: there is none of this id.
  bool cancel(const std::string& id, const std::string& owner);
  // Told of a part of a history when it was read, so that the memory of all of them can be bounded; may throw.
  using PartRead = std::function<void(const Value& items)>;
  // All items before those that come next: of the response, those before it and its output. UserError: one of them is
  // not there (any more).
  Value history(const std::string& id, const std::string& owner, const PartRead& read = {});
  // Empty: it is new.
  Value conversation(const std::string& name, const std::string& owner, const PartRead& read = {});

  size_t size() const;
  size_t bytes() const;

 private:
  struct Entry {
    StoredResponse response;
    std::function<void()> abort = {};  // set: it is being made
  };
  struct Conversation {
    std::pair<std::string, std::string> key;  // owner and name
    std::vector<std::string> items;           // JSON lists, in their order
  };
  using Entries = std::list<Entry>;  // the most recently used first
  using Conversations = std::list<Conversation>;

  Entries::iterator touch(const std::string& id, const std::string& owner);
  void remove(Entries::iterator entry);
  void add_to_conversation(const StoredResponse& response);
  void shrink();

  const Limits limits_;
  mutable std::mutex mutex_;
  Entries entries_;
  std::map<std::string, Entries::iterator> by_id_;
  Conversations conversations_;
  std::map<std::pair<std::string, std::string>, Conversations::iterator> by_name_;
  size_t bytes_ = 0;
};

// A page of a response's input items, newest first unless `ascending`, as OpenAI's list object. `after`: the id of the
// item before the page; empty: from the beginning. UserError: there is no such item.
std::string input_items_page(const StoredResponse& response, int64_t limit, bool ascending, const std::string& after);
// Items with an id each, as a JSON list: those without one get a new one.
std::string items_with_ids(const Value& items);

}  // namespace easydel::server
