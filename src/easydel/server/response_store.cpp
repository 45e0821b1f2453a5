#include "easydel/server/response_store.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/request_checker.h"

namespace easydel::server {
namespace {

size_t bytes_of(const StoredResponse& response) {
  return sizeof(StoredResponse) + response.object.size() + response.input.size() + response.output.size();
}

size_t bytes_of(const std::vector<std::string>& lists) {
  size_t out = 0;
  for (const std::string& list : lists) out += list.size();
  return out;
}

void append_items(const std::string& list, Value& to, const ResponseStore::PartRead& read) {
  Value items = parse_json(list);
  if (read) read(items);
  std::ranges::move(items.items, std::back_inserter(to.items));
}

std::string_view prefix_of(const Value& item) {
  const std::string type = text_of(item, "type");
  if (type == "function_call") return "fc_";
  if (type == "function_call_output") return "fco_";
  return type == "reasoning" ? "rs_" : "msg_";
}

}  // namespace

ResponseStore::Entries::iterator ResponseStore::touch(const std::string& id, const std::string& owner) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end() || found->second->response.owner != owner) return entries_.end();
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second;
}

void ResponseStore::remove(Entries::iterator entry) {
  bytes_ -= bytes_of(entry->response);
  by_id_.erase(entry->response.id);
  entries_.erase(entry);
}

void ResponseStore::shrink() {
  const auto over = [this] { return entries_.size() > limits_.responses || bytes_ > limits_.bytes; };
  while (over() && !entries_.empty()) remove(std::prev(entries_.end()));
  while (!conversations_.empty() && (conversations_.size() > limits_.conversations || bytes_ > limits_.bytes)) {
    bytes_ -= bytes_of(conversations_.back().items);
    by_name_.erase(conversations_.back().key);
    conversations_.pop_back();
  }
}

void ResponseStore::begin(StoredResponse response, std::function<void()> abort) {
  const std::lock_guard lock(mutex_);
  if (bytes_of(response) > limits_.bytes) return;
  bytes_ += bytes_of(response);
  entries_.push_front({std::move(response), std::move(abort)});
  by_id_[entries_.front().response.id] = entries_.begin();
  shrink();
}

void ResponseStore::put(StoredResponse response, bool begun) {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(response.id);
  if (found != by_id_.end())
    remove(found->second);
  else if (begun)
    return;
  if (bytes_of(response) > limits_.bytes) return;
  bytes_ += bytes_of(response);
  entries_.push_front({std::move(response)});
  by_id_[entries_.front().response.id] = entries_.begin();
  add_to_conversation(entries_.front().response);
  shrink();
}

void ResponseStore::add_to_conversation(const StoredResponse& response) {
  if (response.conversation.empty()) return;
  const std::pair key{response.owner, response.conversation};
  const auto known = by_name_.find(key);
  if (known == by_name_.end())
    conversations_.push_front({key, {}});
  else
    conversations_.splice(conversations_.begin(), conversations_, known->second);
  by_name_[key] = conversations_.begin();
  for (const std::string* list : {&response.input, &response.output}) {
    conversations_.front().items.push_back(*list);
    bytes_ += list->size();
  }
}

void ResponseStore::forget(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_id_.find(id); found != by_id_.end()) remove(found->second);
}

std::optional<StoredResponse> ResponseStore::find(const std::string& id, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const auto entry = touch(id, owner);
  return entry == entries_.end() ? std::nullopt : std::optional(entry->response);
}

bool ResponseStore::erase(const std::string& id, const std::string& owner) {
  const std::lock_guard lock(mutex_);
  const auto entry = touch(id, owner);
  if (entry == entries_.end()) return false;
  remove(entry);
  return true;
}

bool ResponseStore::cancel(const std::string& id, const std::string& owner) {
  std::function<void()> abort;
  {
    const std::lock_guard lock(mutex_);
    const auto entry = touch(id, owner);
    if (entry == entries_.end()) return false;
    abort = entry->abort;
  }
  if (abort) abort();
  return true;
}

Value ResponseStore::history(const std::string& id, const std::string& owner, const PartRead& read) {
  std::vector<std::string> lists;  // the newest first
  {
    const std::lock_guard lock(mutex_);
    for (std::string at = id; !at.empty();) {
      const auto entry = touch(at, owner);
      if (entry == entries_.end())
        refuse("previous_response_id",
               at == id ? str("there is no response '", id, "'")
                        : str("'", id, "' goes on after '", at, "', which is not stored any more"),
               "send the conversation as input");
      if (entry->abort) refuse("previous_response_id", str("response '", at, "' is still being made"), "wait for it");
      lists.push_back(entry->response.output);
      lists.push_back(entry->response.input);
      at = entry->response.previous;
    }
  }
  Value out = Value::list();
  for (size_t i = lists.size(); i-- > 0;) append_items(lists[i], out, read);
  return out;
}

Value ResponseStore::conversation(const std::string& name, const std::string& owner, const PartRead& read) {
  std::vector<std::string> lists;
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_name_.find({owner, name});
    if (known != by_name_.end()) lists = known->second->items;
  }
  Value out = Value::list();
  for (const std::string& list : lists) append_items(list, out, read);
  return out;
}

size_t ResponseStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

size_t ResponseStore::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::string items_with_ids(const Value& items) {
  std::string out;
  for (Value item : items.items) {
    if (!member(item, "type")) item.set("type", Value::text("message"));
    if (!member(item, "id")) item.set("id", Value::text(new_completion_id(prefix_of(item))));
    out += (out.empty() ? "" : ",") + to_json(item);
  }
  return "[" + out + "]";
}

std::string input_items_page(const StoredResponse& response, int64_t limit, bool ascending, const std::string& after) {
  std::vector<Value> items = parse_json(response.input).items;
  if (!ascending) std::ranges::reverse(items);
  auto first = items.begin();
  if (!after.empty()) {
    first = std::ranges::find_if(items, [&](const Value& item) { return text_of(item, "id") == after; });
    if (first == items.end()) refuse("after", str("there is no item '", after, "'"));
    ++first;
  }
  const auto last = first + std::min<int64_t>(limit, items.end() - first);
  std::string data;
  for (auto item = first; item != last; ++item) data += (data.empty() ? "" : ",") + to_json(*item);
  const auto id_of = [](const Value& item) { return json_text(text_of(item, "id")); };
  return str(R"({"object":"list","data":[)", data, R"(],"first_id":)", first == last ? "null" : id_of(*first),
             R"(,"last_id":)", first == last ? "null" : id_of(*std::prev(last)), R"(,"has_more":)",
             last == items.end() ? "false" : "true", "}");
}

}  // namespace easydel::server
