#include "easydel/base/names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace easydel {
namespace {

// Edit distance in which swapping two adjacent letters is one step (optimal string alignment).
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = std::exchange(last, row);
  }
  return last.back();
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  const std::string wanted = canonical(word);
  std::string best;
  size_t best_distance = std::string::npos;
  for (const std::string& name : known) {
    const size_t allowed = std::max<size_t>(1, std::max(wanted.size(), name.size()) / 3);
    const size_t longer = std::max(wanted.size(), name.size()), shorter = std::min(wanted.size(), name.size());
    if (longer - shorter > allowed) continue;
    const size_t d = distance(wanted, canonical(name));
    // A substitution would make any one-letter name "near", and so would a word that shares no letter.
    if (d <= allowed && d < longer && d < best_distance) best = name, best_distance = d;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  const std::string best = nearest(word, known);
  return best.empty() ? "known: " + join(known, ", ") : "did you mean '" + best + "'?";
}

std::string canonical(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '-' ? '_' : char(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string counted(int64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) {
    if (&word != words.data()) out += separator;
    out += word;
  }
  return out;
}

}  // namespace easydel
