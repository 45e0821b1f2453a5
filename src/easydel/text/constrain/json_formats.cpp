// The formats of JSON Schema that are regular, as patterns.
#include <map>

#include "easydel/base/names.h"
#include "easydel/text/constrain/json_strings.h"
#include "easydel/text/constrain/pattern.h"

namespace easydel::text::constrain {
namespace {

std::string between(const std::string& part) { return "(?:" + part + ")"; }

const std::map<std::string, std::string, std::less<>>& format_patterns() {
  static const auto* const table = [] {
    auto& out = *new std::map<std::string, std::string, std::less<>>;
    // RFC 3339, with the days that the months have; no leap seconds.
    const std::string year = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])";
    const std::string leap_year = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
    const std::string date =
        between(year +
                "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
                "|02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
                leap_year + "-02-29");
    const std::string time =
        "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";
    out["date"] = date;
    out["time"] = time;
    out["date-time"] = date + "T" + time;
    out["uuid"] = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
    const std::string octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
    const std::string ipv4 = octet + "(?:\\." + octet + "){3}";
    out["ipv4"] = ipv4;
    // RFC 4291: eight groups, of which one run may be left out, and the last two as an IPv4 address.
    const std::string group = "[0-9a-fA-F]{1,4}", groups = between(group + ":"),
                      last = between(group + ":" + group + "|" + ipv4);
    std::string ipv6 = groups + "{6}" + last;
    for (int before = 0; before <= 7; ++before) {
      const std::string head =
          before == 0 ? "" : between(group + between(":" + group) + "{" + std::to_string(before - 1) + "}");
      const int after = 7 - before;  // groups at most after the run
      std::string tail =
          after == 0 ? "" : between(group + between(":" + group) + "{0," + std::to_string(after - 1) + "}") + "?";
      if (after >= 2) tail = between(tail + "|" + groups + "{0," + std::to_string(after - 2) + "}" + ipv4);
      ipv6 += "|" + head + "::" + tail;
    }
    out["ipv6"] = between(ipv6);
    const std::string label = "[0-9a-zA-Z](?:[0-9a-zA-Z-]{0,61}[0-9a-zA-Z])?";
    out["hostname"] = label + "(?:\\." + label + ")*";
    // RFC 5321 without quoted local parts and address literals.
    const std::string atom = "[0-9a-zA-Z!#$%&'*+/=?^_`{|}~-]+";
    out["email"] = atom + "(?:\\." + atom + ")*@" + label + "(?:\\." + label + ")*";
    // RFC 3986; hosts are names or IPv4 addresses, which names include.
    const std::string coded = "%[0-9a-fA-F]{2}", safe = "[0-9a-zA-Z._~!$&'()*+,;=-]";
    const std::string in_path = between(safe + "|[:@]|" + coded), in_name = between(safe + "|" + coded);
    const std::string authority = between(between(safe + "|:|" + coded) + "*@") + "?" + in_name + "*(?::[0-9]*)?";
    out["uri"] = "[a-zA-Z][0-9a-zA-Z+.-]*:(?://" + authority + "(?:/" + in_path + "*)*|/?(?:" + in_path + "+(?:/" +
                 in_path + "*)*)?)(?:\\?" + between(in_path + "|[/?]") + "*)?(?:#" + between(in_path + "|[/?]") + "*)?";
    return &out;
  }();
  return *table;
}

}  // namespace

std::optional<CharDfa> format_texts(std::string_view format, Work& work) {
  const auto at = format_patterns().find(format);
  if (at == format_patterns().end()) return std::nullopt;
  CharDfa out = CharDfa::of(parse_pattern(at->second, "format", work), false, work);
  if (format == "hostname") out = out.join(CharDfa::length(1, 253, work), CharDfa::Join::both, work);
  return out;
}

std::string known_formats() {
  std::vector<std::string> names;
  for (const auto& [name, pattern] : format_patterns()) names.push_back(name);
  return join(names, ", ");
}

}  // namespace easydel::text::constrain
