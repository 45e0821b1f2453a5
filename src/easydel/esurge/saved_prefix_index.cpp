#include "easydel/esurge/saved_prefix_index.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>

#include "easydel/base/error.h"
#include "easydel/base/sha256.h"

namespace easydel::esurge {
namespace {

constexpr std::string_view magic = "easydel prefix index 2\n";

class Writer {
 public:
  template <class T>
  void number(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    out.append(bytes, sizeof(T));
  }
  void text(std::string_view text) {
    number(uint32_t(text.size()));
    out += text;
  }
  std::string out = std::string(magic);
};

[[noreturn]] void broken(const std::string& problem) {
  refuse("prefix cache", "its index is damaged: " + problem, "remove it; the engine makes a new one");
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string text() { return std::string(take(number<uint32_t>())); }
  // A number of things that take at least `bytes` each.
  size_t count(size_t bytes) {
    const auto count = size_t(number<uint32_t>());
    if (count > left_.size() / bytes) broken(str(count, " entries in the last ", left_.size(), " bytes"));
    return count;
  }
  bool at_end() const { return left_.empty(); }

 private:
  std::string_view take(size_t size) {
    if (size > left_.size()) broken("it ends too early");
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  std::string_view left_;
};

// Whether a number of a stored page is named for the first time.
class Numbers {
 public:
  explicit Numbers(const std::vector<int64_t>& counts) {
    for (const int64_t count : counts) named_.emplace_back(size_t(count), false);
  }
  void name(size_t group, int32_t number) {
    auto& named = named_[group];
    if (number < 0 || size_t(number) >= named.size() || named[size_t(number)])
      broken(str("page ", number, " of group ", group, " is not one of ", named.size(), ", or is named twice"));
    named[size_t(number)] = true;
  }

 private:
  std::vector<std::vector<bool>> named_;
};

SavedPrefixIndex::Node read_node(Reader& reader, const CacheLayout& layout, const SavedPrefixIndex& before,
                                 Numbers& numbers) {
  SavedPrefixIndex::Node node;
  const auto parent = reader.number<int32_t>();
  if (parent >= 0) {
    if (size_t(parent) >= before.nodes.size()) broken("a node comes before its parent");
    if (int64_t(before.nodes[size_t(parent)].tokens.size()) != layout.page_size) broken("part of a page has children");
    node.parent = parent;
  } else if (node.root = -1 - parent; size_t(node.root) >= before.roots.size()) {
    broken("a node has a root that is not there");
  }
  node.stamp = reader.number<uint64_t>();
  const size_t tokens = reader.count(sizeof(uint32_t));
  if (tokens == 0 || int64_t(tokens) > layout.page_size) broken(str("a page of ", tokens, " tokens"));
  for (size_t i = 0; i < tokens; ++i) {
    node.tokens.push_back(reader.number<uint32_t>());
    if (!layout.roles_matter && node.tokens.back() > uint32_t(std::numeric_limits<int32_t>::max()))
      broken("a token has a role, and roles do not matter");
  }
  const int state_group = layout.state_group();
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    const auto number = reader.number<int32_t>();
    node.pages.push_back(number);
    if (int(g) == state_group ? number != -1 : layout.groups[g].kind == CacheGroup::Kind::full && number < 0)
      broken(str("a node with page ", number, " of group ", g));
    if (number != -1) numbers.name(g, number);
  }
  const size_t states = reader.count(sizeof(int64_t));
  if (states > 0 && state_group < 0) broken("states of a model without states");
  for (size_t i = 0; i < states; ++i) {
    SavedPrefixIndex::State state;
    state.rows = int64_t(reader.number<uint32_t>());
    state.number = reader.number<int32_t>();
    state.stamp = reader.number<uint64_t>();
    if (state.rows < 1 || state.rows > int64_t(tokens) || (i > 0 && state.rows <= node.states.back().rows))
      broken(str("a state after ", state.rows, " of ", tokens, " tokens"));
    numbers.name(size_t(state_group), state.number);
    node.states.push_back(state);
  }
  return node;
}

// No child of a node is the beginning of another one.
void check_siblings(const SavedPrefixIndex& index) {
  std::vector<int32_t> order(index.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto family = [&](int32_t i) {
    const auto& node = index.nodes[size_t(i)];
    return node.parent >= 0 ? int64_t(node.parent) : -1 - int64_t(node.root);
  };
  std::ranges::sort(order, [&](int32_t a, int32_t b) {
    if (family(a) != family(b)) return family(a) < family(b);
    return index.nodes[size_t(a)].tokens < index.nodes[size_t(b)].tokens;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const auto &a = index.nodes[size_t(order[i - 1])].tokens, &b = index.nodes[size_t(order[i])].tokens;
    if (family(order[i - 1]) == family(order[i]) && a.size() <= b.size() && std::equal(a.begin(), a.end(), b.begin()))
      broken("a page is the beginning of another one");
  }
}

std::string digest_of(std::string_view bytes) {
  files::Sha256 digest;
  digest.add(bytes.data(), bytes.size());
  return digest.hex();
}

Value layout_document(const CacheLayout& layout) {
  static constexpr std::string_view kinds[] = {"full", "window", "chunk", "state"};
  Value groups = Value::list();
  for (const CacheGroup& group : layout.groups) {
    Value entry = Value::map();
    entry.set("kind", Value::text(std::string(kinds[size_t(group.kind)])));
    entry.set("page_bytes", Value::integer(group.page_bytes));
    entry.set("span", Value::integer(group.span));
    groups.items.push_back(std::move(entry));
  }
  return groups;
}

}  // namespace

std::string SavedPrefixIndex::encode(const CacheLayout& layout) const {
  Writer out;
  out.number(uint32_t(layout.page_size));
  out.number(uint32_t(layout.groups.size()));
  for (const int64_t count : pages) out.number(uint32_t(count));
  out.number(uint32_t(roots.size()));
  for (const CacheRoot& root : roots) {
    for (const std::string* text : {&root.weights, &root.adapter, &root.format, &root.salt}) out.text(*text);
    out.number(root.adapter_version);
    out.number(root.frequency_class);
    out.number(root.part);
  }
  out.number(uint32_t(nodes.size()));
  for (const Node& node : nodes) {
    out.number(node.parent >= 0 ? node.parent : -1 - node.root);
    out.number(node.stamp);
    out.number(uint32_t(node.tokens.size()));
    for (const uint32_t token : node.tokens) out.number(token);
    for (const int32_t page : node.pages) out.number(page);
    out.number(uint32_t(node.states.size()));
    for (const State& state : node.states) {
      out.number(uint32_t(state.rows));
      out.number(state.number);
      out.number(state.stamp);
    }
  }
  return out.out;
}

SavedPrefixIndex decode_prefix_index(std::string_view bytes, const CacheLayout& layout) {
  if (!bytes.starts_with(magic)) broken("it is of another kind or version");
  Reader reader(bytes.substr(magic.size()));
  if (reader.number<uint32_t>() != uint32_t(layout.page_size) ||
      reader.number<uint32_t>() != uint32_t(layout.groups.size()))
    broken("it is of another layout");
  SavedPrefixIndex out;
  for (size_t g = 0; g < layout.groups.size(); ++g) {
    out.pages.push_back(int64_t(reader.number<uint32_t>()));
    // Each of them is named by a few bytes.
    if (size_t(out.pages.back()) > bytes.size() / sizeof(int32_t)) broken(str(out.pages.back(), " pages"));
  }
  constexpr size_t min_root = 4 * sizeof(uint32_t) + 3 * sizeof(int64_t);
  for (size_t i = reader.count(min_root); i-- > 0;) {
    CacheRoot root;
    for (std::string* text : {&root.weights, &root.adapter, &root.format, &root.salt}) *text = reader.text();
    root.adapter_version = reader.number<int64_t>();
    root.frequency_class = reader.number<int64_t>();
    root.part = reader.number<int64_t>();
    out.roots.push_back(std::move(root));
  }
  if (std::set<CacheRoot>(out.roots.begin(), out.roots.end()).size() != out.roots.size()) broken("a root comes twice");
  Numbers numbers(out.pages);
  constexpr size_t min_node = 4 * sizeof(uint32_t) + sizeof(uint64_t);
  for (size_t i = reader.count(min_node); i-- > 0;) out.nodes.push_back(read_node(reader, layout, out, numbers));
  if (!reader.at_end()) broken("it goes on after its end");
  check_siblings(out);
  return out;
}

std::string RankPlace::describe() const { return str("rank ", rank, " of ", ranks, ", part ", part, " of ", parts); }

std::vector<std::vector<int32_t>> own_pages(const SavedPrefixIndex& index, const CacheLayout& layout, int64_t part) {
  const int state_group = layout.state_group();
  std::vector<std::vector<int32_t>> out;
  for (const int64_t count : index.pages) out.emplace_back(size_t(count), -1);
  std::vector<char> own;  // by node
  for (const SavedPrefixIndex::Node& node : index.nodes) {
    const bool is_own = node.parent >= 0 ? own[size_t(node.parent)] != 0 : index.roots[size_t(node.root)].part == part;
    own.push_back(char(is_own));
    if (!is_own) continue;
    for (size_t g = 0; g < node.pages.size(); ++g)
      if (node.pages[g] >= 0) out[g][size_t(node.pages[g])] = 0;
    for (const SavedPrefixIndex::State& state : node.states) out[size_t(state_group)][size_t(state.number)] = 0;
  }
  for (auto& group : out) {
    int32_t next = 0;
    for (int32_t& page : group)
      if (page == 0) page = next++;
  }
  return out;
}

Value prefix_cache_manifest(const PrefixCacheIdentity& identity, const CacheLayout& layout, std::string_view index) {
  Value out = Value::map();
  out.set("kind", Value::text("easydel prefix cache"));
  out.set("version", Value::integer(2));
  out.set("weights", Value::text(identity.weights));
  out.set("order", Value::text(identity.order));
  out.set("format", Value::text(identity.format));
  out.set("ranks", Value::text(identity.place.describe()));
  out.set("page_size", Value::integer(layout.page_size));
  out.set("roles_matter", Value::boolean(layout.roles_matter));
  out.set("groups", layout_document(layout));
  out.set("index_sha256", Value::text(digest_of(index)));
  return out;
}

std::string why_prefix_cache_does_not_fit(const Value& manifest, const PrefixCacheIdentity& identity,
                                          const CacheLayout& layout, std::string_view index) {
  static constexpr std::pair<std::string_view, std::string_view> reasons[] = {
      {"kind", "it is not a prefix cache"},
      {"version", "it is of another version"},
      {"order", "its order of additions is another one"},
      {"format", "its keys and values have another format"},
      {"ranks", "it belongs to another layout of ranks"},
      {"weights", "it belongs to other weights"},
      {"page_size", "its page_size is another one"},
      {"roles_matter", "it belongs to another kind of model"},
      {"groups", "its layers keep other pages"},
      {"index_sha256", "its index is damaged"},
  };
  const Value now = prefix_cache_manifest(identity, layout, index);
  const auto shown = [](const Value* value) {
    return value && !value->is_list() && !value->is_map() && !value->is_null() ? value->scalar : std::string();
  };
  for (const auto& [key, reason] : reasons) {
    const Value *then = manifest.is_map() ? manifest.find(key) : nullptr, *expected = now.find(key);
    if (then && *then == *expected) continue;
    const std::string was = shown(then), is = shown(expected);
    const bool has_values = key != "kind" && key != "index_sha256" && !was.empty() && !is.empty();
    return str(reason, has_values ? str(" (", was, " instead of ", is, ")") : "");
  }
  return "";
}

}  // namespace easydel::esurge
