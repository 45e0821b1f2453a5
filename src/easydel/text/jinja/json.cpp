// json.dumps for the filter tojson.
#include <algorithm>
#include <cmath>

#include "easydel/text/jinja/value.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

class Dumper {
 public:
  explicit Dumper(const JsonOptions& options) : options_(options) {}

  void value(const Var& v, size_t depth) {
    check_size(out.size());
    if (depth > 200) fail("a value is nested too deeply for JSON");
    switch (v.type()) {
      case Var::Type::none:
        out += "null";
        return;
      case Var::Type::boolean:
        out += v.as_bool() ? "true" : "false";
        return;
      case Var::Type::integer:
        out += std::to_string(v.as_integer());
        return;
      case Var::Type::number:
        out += number(v.as_number());
        return;
      case Var::Type::string:
        string(v.as_string());
        return;
      case Var::Type::list:
      case Var::Type::tuple: {
        const auto& items = v.items();
        if (items.empty()) {
          out += "[]";
          return;
        }
        out += '[';
        for (size_t i = 0; i < items.size(); ++i) {
          if (i) out += options_.item_separator;
          line(depth + 1);
          value(items[i], depth + 1);
        }
        line(depth);
        out += ']';
        return;
      }
      case Var::Type::dict:
        return dict(v.as_dict(), depth);
      default:
        fail("Object of type ", type_name(v), " is not JSON serializable");
    }
  }

  std::string out;

 private:
  static std::string number(double d) {
    if (std::isnan(d)) return "NaN";
    if (std::isinf(d)) return d > 0 ? "Infinity" : "-Infinity";
    return repr_of_number(d);
  }

  static std::string key(const Var& v) {
    switch (v.type()) {
      case Var::Type::string:
        return v.as_string();
      case Var::Type::none:
        return "null";
      case Var::Type::boolean:
        return v.as_bool() ? "true" : "false";
      case Var::Type::integer:
        return std::to_string(v.as_integer());
      case Var::Type::number:
        return number(v.as_number());
      default:
        fail("keys must be str, int, float, bool or None, not ", type_name(v));
    }
  }

  void line(size_t depth) {
    if (!options_.indented) return;
    out += '\n';
    for (size_t i = 0; i < depth; ++i) out += options_.indent;
  }

  void dict(const DictData& data, size_t depth) {
    if (data.entries.empty()) {
      out += "{}";
      return;
    }
    std::vector<const std::pair<Var, Var>*> order;
    for (auto& entry : data.entries) order.push_back(&entry);
    if (options_.sort_keys)
      std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return less(a->first, b->first); });
    out += '{';
    for (size_t i = 0; i < order.size(); ++i) {
      if (i) out += options_.item_separator;
      line(depth + 1);
      string(key(order[i]->first));
      out += options_.key_separator;
      value(order[i]->second, depth + 1);
    }
    line(depth);
    out += '}';
  }

  void unit(unsigned code) {
    char buffer[16];
    std::snprintf(buffer, sizeof buffer, "\\u%04x", code);
    out += buffer;
  }

  void string(const std::string& text) {
    out += '"';
    for (size_t at = 0; at < text.size();) {
      size_t from = at;
      char32_t c = next_character(text, at);
      switch (c) {
        case '"':
          out += "\\\"";
          continue;
        case '\\':
          out += "\\\\";
          continue;
        case '\n':
          out += "\\n";
          continue;
        case '\r':
          out += "\\r";
          continue;
        case '\t':
          out += "\\t";
          continue;
        case '\b':
          out += "\\b";
          continue;
        case '\f':
          out += "\\f";
          continue;
        default:
          break;
      }
      if (c < 0x20 || (options_.ensure_ascii && c >= 0x7f && c < 0x10000)) {
        unit(c);
      } else if (options_.ensure_ascii && c >= 0x10000) {
        unit(0xd800 + ((c - 0x10000) >> 10));
        unit(0xdc00 + ((c - 0x10000) & 0x3ff));
      } else {
        out.append(text, from, at - from);
      }
    }
    out += '"';
  }

  const JsonOptions& options_;
};

}  // namespace

std::string to_json_text(const Var& value, const JsonOptions& options) {
  Dumper dumper(options);
  dumper.value(value, 0);
  return std::move(dumper.out);
}

}  // namespace easydel::text::jinja
