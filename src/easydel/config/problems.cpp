#include "easydel/config/problems.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/config/section.h"

namespace easydel::config {
namespace {

// "mixture.informs[0].type" -> "mixture.informs[0]" -> "mixture.informs" -> "mixture" -> ""
std::string above_of(const std::string& path) {
  const size_t cut = path.find_last_of(".[");
  return cut == std::string::npos ? "" : path.substr(0, cut);
}

}  // namespace

void Problems::add(std::string path, Place place, std::string what, std::string hint) {
  // Two checks may find the same.
  if (std::ranges::any_of(problems_, [&](const Problem& p) { return p.path == path && p.what == what; })) return;
  problems_.push_back({std::move(path), place, std::move(what), std::move(hint)});
}

void Problems::add(std::string path, std::string what, std::string hint) {
  const Place place = place_of(path);
  add(std::move(path), place, std::move(what), std::move(hint));
}

void Problems::note(std::string_view path, std::string_view text) {
  const std::string line = str(where(std::string(path), place_of(std::string(path))), ": ", path, ": ", text);
  if (std::ranges::find(notes_, line) == notes_.end()) notes_.push_back(line);
}

void Problems::no_effect(std::string path, std::string why) {
  no_effect_.emplace_back(std::move(path), std::move(why));
}

bool Problems::any_at(std::string_view path) const {
  return std::ranges::any_of(problems_, [path](const Problem& p) {
    return p.path.starts_with(path) &&
           (p.path.size() == path.size() || p.path[path.size()] == '.' || p.path[path.size()] == '[');
  });
}

Place Problems::place_of(std::string path) const {
  for (;; path = above_of(path)) {
    const auto found = places_.find(path);
    if (found != places_.end()) return found->second;
    if (path.empty()) return {};
  }
}

std::string Problems::where(const std::string& path, Place place) const {
  for (std::string at = path; !at.empty(); at = above_of(at))
    if (const auto source = sources_.find(at); source != sources_.end()) return source->second;
  return place.line > 0 ? str(file_, ":", place.line, ":", place.column) : file_;
}

std::vector<Problem> Problems::sorted() const {
  std::vector<Problem> out = problems_;
  const auto order = [](const Problem& p) {
    return std::pair(p.place.line > 0 ? p.place.line : std::numeric_limits<int>::max(), p.place.column);
  };
  std::ranges::stable_sort(out, {}, order);
  return out;
}

std::vector<std::string> Problems::notes() const {
  std::vector<std::string> out = notes_;
  std::vector<std::string> whys;
  for (const auto& [path, why] : no_effect_)
    if (std::ranges::find(whys, why) == whys.end()) whys.push_back(why);
  std::vector<std::string> groups;
  for (const std::string& why : whys) {
    std::vector<std::string> paths;
    for (const auto& [path, other] : no_effect_)
      if (other == why && std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
    groups.push_back(join(paths, ", ") + (why.empty() ? "" : " (" + why + ")"));
  }
  if (!groups.empty()) out.push_back("has no effect here: " + join(groups, "; "));
  return out;
}

std::string Problems::describe(const Problem& p) const {
  return where(p.path, p.place) + ": " + (p.path.empty() ? "" : p.path + ": ") + p.what +
         (p.hint.empty() ? "" : "\n    " + p.hint);
}

std::string Problems::text() const {
  std::string out;
  for (const Problem& problem : sorted()) out += describe(problem) + "\n";
  return out + str(size(), size() == 1 ? " problem in " : " problems in ", file_, "; nothing was run.");
}

void Problems::throw_if_any() const {
  if (!empty()) throw UserError(text());
}

std::string Keys::path_of(std::string_view key) const { return join_path(path_, key); }
bool Keys::given(std::string_view key) const { return problems_.given(path_of(key)); }
void Keys::refuse(std::string_view key, std::string what, std::string hint) {
  problems_.add(path_of(key), std::move(what), std::move(hint));
}
void Keys::note(std::string_view key, std::string_view text) { problems_.note(path_of(key), text); }
void Keys::no_effect(std::string_view key, std::string why) { problems_.no_effect(path_of(key), std::move(why)); }

}  // namespace easydel::config
