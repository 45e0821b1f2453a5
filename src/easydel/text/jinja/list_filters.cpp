// Filters over lists and dicts: map, select, sort, join and others.
#include <algorithm>
#include <cmath>

#include "easydel/text/jinja/filters.h"
#include "easydel/text/jinja/strings.h"

namespace easydel::text::jinja {
namespace {

// Looks up 'a.b.0' in an item: attributes and indices in sequence.
Var attribute_path(Interpreter& interpreter, Var item, const Var& path, const Var* fallback = nullptr) {
  if (path.is_integral()) return interpreter.item(item, path);
  std::string word = to_text(path);
  for (const std::string& part : split(
           word,
           [] {
             static const std::string dot = ".";
             return &dot;
           }(),
           -1, false)) {
    bool index = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    item = interpreter.item(item, index ? Var::integer(std::atoll(part.substr(0, 15).c_str())) : Var::string(part));
    if (fallback && item.is_undefined()) item = *fallback;
  }
  return item;
}

Var folded(const Var& v, bool case_sensitive) {
  return v.is_string() && !case_sensitive ? Var::string(lower(v.as_string())) : v;
}

std::vector<Var> sorted(std::vector<Var> items, const std::vector<Var>& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return reverse ? less(keys[b], keys[a]) : less(keys[a], keys[b]); });
  std::vector<Var> out;
  for (size_t i : order) out.push_back(std::move(items[i]));
  return out;
}

// The key that sort, min, max and unique compare by.
Var key_of(Interpreter& interpreter, const Var& item, const Var* path, bool case_sensitive) {
  if (!path || path->is_none()) return folded(item, case_sensitive);
  if (!path->is_string()) return folded(attribute_path(interpreter, item, *path), case_sensitive);
  static const std::string comma = ",";
  std::vector<std::string> paths = split(path->as_string(), &comma, -1, false);
  if (paths.size() == 1) return folded(attribute_path(interpreter, item, *path), case_sensitive);
  std::vector<Var> keys;
  for (std::string& each : paths)
    keys.push_back(folded(attribute_path(interpreter, item, Var::string(each)), case_sensitive));
  return Var::list(std::move(keys));
}

Var sort(Interpreter& interpreter, const Var& v, const Arguments& a) {
  std::vector<Var> items = iterate(v), keys;
  for (const Var& item : items) {
    Var key = key_of(interpreter, item, given(a, 2, "attribute"), flag(a, 1, "case_sensitive", false));
    keys.push_back(key.type() == Var::Type::list
                       ? key
                       : Var::list({key}));  // lists of keys, so that values with equal keys are not compared
  }
  return Var::list(sorted(std::move(items), keys, flag(a, 0, "reverse", false)));
}

Var extreme(Interpreter& interpreter, const Var& v, const Arguments& a, bool largest) {
  std::vector<Var> items = iterate(v);
  if (items.empty()) return Var::undefined("No aggregated item, sequence was empty.");
  auto key = [&](const Var& item) {
    return key_of(interpreter, item, given(a, 1, "attribute"), flag(a, 0, "case_sensitive", false));
  };
  size_t best = 0;
  Var best_key = key(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Var other = key(items[i]);
    if (largest ? less(best_key, other) : less(other, best_key)) best = i, best_key = other;
  }
  return items[best];
}

Var unique(Interpreter& interpreter, const Var& v, const Arguments& a) {
  std::vector<Var> out;
  DictData seen;
  for (const Var& item : iterate(v)) {
    interpreter.step();
    Var key = key_of(interpreter, item, given(a, 1, "attribute"), flag(a, 0, "case_sensitive", false));
    if (seen.find(key)) continue;
    seen.set(key, Var::none());
    out.push_back(item);
  }
  return Var::view("generator", std::move(out));
}

Var dictsort(Interpreter&, const Var& v, const Arguments& a) {
  if (!v.is_dict()) fail("'", type_name(v), "' object has no attribute 'items'");
  std::string by = text(a, 1, "by", "key");
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  bool case_sensitive = flag(a, 0, "case_sensitive", false);
  std::vector<Var> items, keys;
  for (auto& [key, value] : v.as_dict().entries) {
    items.push_back(Var::tuple({key, value}));
    keys.push_back(folded(by == "key" ? key : value, case_sensitive));
  }
  return Var::list(sorted(std::move(items), keys, flag(a, 2, "reverse", false)));
}

Var groupby(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const Var* path = given(a, 0, "attribute");
  if (!path) fail("groupby() needs an attribute");
  const Var* fallback = given(a, 1, "default");
  bool case_sensitive = flag(a, 2, "case_sensitive", false);
  std::vector<Var> items = iterate(v), keys, out;
  auto key = [&](const Var& item) { return attribute_path(interpreter, item, *path, fallback); };
  for (const Var& item : items) keys.push_back(folded(key(item), case_sensitive));
  items = sorted(std::move(items), keys, false);
  std::vector<Var> group;
  for (size_t i = 0; i < items.size(); ++i) {
    group.push_back(items[i]);
    bool ends = i + 1 == items.size() ||
                !equal(folded(key(items[i]), case_sensitive), folded(key(items[i + 1]), case_sensitive));
    if (!ends) continue;
    Var name = key(group[0]);
    out.push_back(Var::tuple({name, Var::list(std::move(group))}));
    group.clear();
  }
  return Var::list(std::move(out));
}

Arguments rest_of(const Arguments& a, size_t from) {
  Arguments out;
  if (a.positional.size() > from) out.positional.assign(a.positional.begin() + from, a.positional.end());
  out.named = a.named;
  return out;
}

// map and select treat undefined and none as an empty list.
std::vector<Var> items_if_any(const Var& v) { return v.truth() ? iterate(v) : std::vector<Var>(); }

Var map(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const Var* path = a.positional.empty() ? a.find(SIZE_MAX, "attribute") : nullptr;
  const Var* fallback = a.find(SIZE_MAX, "default");
  if (!path && (a.positional.empty() || !a.positional[0].is_string())) fail("map requires a filter argument");
  std::vector<Var> out;
  Arguments rest = rest_of(a, 1);
  for (const Var& item : items_if_any(v)) {
    interpreter.step();
    out.push_back(path ? attribute_path(interpreter, item, *path, fallback)
                       : interpreter.filter(a.positional[0].as_string(), item, rest));
  }
  return Var::view("generator", std::move(out));
}

// select, reject, selectattr, rejectattr.
Var chosen(Interpreter& interpreter, const Var& v, const Arguments& a, bool keep, bool by_attribute) {
  size_t at = by_attribute ? 1 : 0;
  if (by_attribute && a.positional.empty()) fail("Missing parameter for attribute name");
  bool has_test = a.positional.size() > at;
  if (has_test && !a.positional[at].is_string()) fail("no test named ", repr(a.positional[at]));
  Arguments rest = rest_of(a, at + 1);
  std::vector<Var> out;
  for (const Var& item : items_if_any(v)) {
    interpreter.step();
    Var value = by_attribute ? attribute_path(interpreter, item, a.positional[0]) : item;
    bool holds = has_test ? interpreter.test(a.positional[at].as_string(), value, rest) : value.truth();
    if (holds == keep) out.push_back(item);
  }
  return Var::view("generator", std::move(out));
}

Var join(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const Var *path = given(a, 1, "attribute"), *given_between = given(a, 0, "d");
  std::vector<Var> items = iterate(v);
  if (path && !path->is_none())
    for (Var& item : items) item = attribute_path(interpreter, item, *path);
  // With autoescaping, one Markup makes the whole result a Markup.
  bool markup = interpreter.autoescapes() && given_between && given_between->is_markup();
  if (interpreter.autoescapes())
    for (const Var& item : items) markup = markup || item.is_markup();
  auto written = [&](const Var& one) { return markup && !one.is_markup() ? escape(to_text(one)) : to_text(one); };
  std::string out, between = given_between ? written(Var::string(text(a, 0, "d", ""), given_between->is_markup())) : "";
  for (size_t i = 0; i < items.size(); ++i) {
    out += (i ? between : "") + written(items[i]);
    check_size(out.size());
  }
  return Var::string(std::move(out), markup);
}

Var sum(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const Var *path = given(a, 0, "attribute"), *start = given(a, 1, "start");
  Var out = start ? *start : Var::integer(0);
  for (const Var& item : iterate(v))
    out = binary("+", out, path && !path->is_none() ? attribute_path(interpreter, item, *path) : item);
  return out;
}

Var batch(Interpreter&, const Var& v, const Arguments& a) {
  int64_t size = number(a, 0, "linecount", 0);
  if (size < 1) fail("batch() needs a size of at least 1");
  const Var* fill = given(a, 1, "fill_with");
  std::vector<Var> out, row;
  for (Var& item : iterate(v)) {
    if (int64_t(row.size()) == size) out.push_back(Var::list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (row.empty()) return Var::view("generator", std::move(out));
  if (fill && !fill->is_none()) {
    check_size(size_t(size) * sizeof(Var));
    row.resize(size_t(size), *fill);
  }
  out.push_back(Var::list(std::move(row)));
  return Var::view("generator", std::move(out));
}

Var slice_filter(Interpreter&, const Var& v, const Arguments& a) {
  int64_t slices = number(a, 0, "slices", 0);
  if (slices < 1 || slices > 100'000) fail("slice() needs a number of slices from 1 to 100000");
  const Var* fill = given(a, 1, "fill_with");
  std::vector<Var> items = iterate(v), out;
  auto n = int64_t(items.size()), per = n / slices, longer = n % slices, at = int64_t{0};
  for (int64_t i = 0; i < slices; ++i) {
    int64_t size = per + (i < longer);
    std::vector<Var> row(items.begin() + at, items.begin() + at + size);
    at += size;
    if (fill && !fill->is_none() && i >= longer) row.push_back(*fill);
    out.push_back(Var::list(std::move(row)));
  }
  return Var::view("generator", std::move(out));
}

Var reverse(Interpreter&, const Var& v, const Arguments&) {
  if (v.is_string()) {
    Var by = Var::integer(-1);
    return slice(v, nullptr, nullptr, &by);
  }
  std::vector<Var> items = iterate(v);
  std::reverse(items.begin(), items.end());
  bool list = v.is_view() && v.as_view().once();
  return list ? Var::list(std::move(items)) : Var::view("list_reverseiterator", std::move(items));
}

Var end_item(const Var& v, bool last) {
  if (v.is_view() && v.as_view().once()) {
    if (last) fail("'", type_name(v), "' object is not reversible");
    ViewData& view = v.as_view();  // only one item is taken
    if (view.taken < view.items.size()) return view.items[view.taken++];
  }
  std::vector<Var> items = iterate(v);
  if (items.empty())
    return Var::undefined(last ? "No last item, sequence was empty." : "No first item, sequence was empty.");
  return last ? items.back() : items.front();
}

Var items(Interpreter&, const Var& v, const Arguments&) {
  if (v.is_undefined()) return Var::view("generator", {});
  if (!v.is_dict()) {  // a Python generator fails only when it is iterated
    Var out = Var::view("generator", {});
    out.as_view().failure = "Can only get item pairs from a mapping.";
    return out;
  }
  std::vector<Var> out;
  for (auto& [key, value] : v.as_dict().entries) out.push_back(Var::tuple({key, value}));
  return Var::view("generator", std::move(out));
}

const NamedFilter all_list_filters[] = {
    {"batch", batch},
    {"dictsort", dictsort},
    {"first", [](Interpreter&, const Var& v, const Arguments&) { return end_item(v, false); }},
    {"groupby", groupby},
    {"items", items},
    {"join", join},
    {"last", [](Interpreter&, const Var& v, const Arguments&) { return end_item(v, true); }},
    {"list", [](Interpreter&, const Var& v, const Arguments&) { return Var::list(iterate(v)); }},
    {"map", map},
    {"max", [](Interpreter& i, const Var& v, const Arguments& a) { return extreme(i, v, a, true); }},
    {"min", [](Interpreter& i, const Var& v, const Arguments& a) { return extreme(i, v, a, false); }},
    {"reject", [](Interpreter& i, const Var& v, const Arguments& a) { return chosen(i, v, a, false, false); }},
    {"rejectattr", [](Interpreter& i, const Var& v, const Arguments& a) { return chosen(i, v, a, false, true); }},
    {"reverse", reverse},
    {"select", [](Interpreter& i, const Var& v, const Arguments& a) { return chosen(i, v, a, true, false); }},
    {"selectattr", [](Interpreter& i, const Var& v, const Arguments& a) { return chosen(i, v, a, true, true); }},
    {"slice", slice_filter},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const NamedFilter> list_filters() { return all_list_filters; }

}  // namespace easydel::text::jinja
