// Groups on a mesh. Shapes and dtypes are adapted to Gloo and checked here before Gloo sees them, because a call that
// Gloo refuses half-way leaves the ranks out of step.
#include "easydel/collective/team.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstdlib>
#include <cstring>
#include <map>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/collective/gloo.h"

namespace easydel::collective {

struct Group::Impl {
  std::shared_ptr<GlooGroup> gloo;
  std::string name;  // "tp:2,3": its axes and ranks
  int64_t rank = 0, size = 1;
  bool debug = false;

  void check_call(const char* operation, const Tensor& x, int64_t detail) const;
};

namespace {

bool narrow_float(const Tensor& x) { return x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf; }

void check_sendable(const char* operation, const Tensor& x) {
  if (!x.device().is_cpu()) {
    refuse("collective", str(operation, " on ", x.device().str(), ": more than one rank on a GPU is not built yet"),
           "run one rank on the GPU, or set loader.device: cpu");
  }
  switch (x.scalar_type()) {
    case at::kFloat:
    case at::kDouble:
    case at::kBFloat16:
    case at::kHalf:
    case at::kLong:
    case at::kInt:
    case at::kByte:
    case at::kBool:
      return;
    default:
      throw Bug(str("collective: ", operation, " cannot send ", toString(x.scalar_type())));
  }
}

std::string shape_text(const int64_t* sizes, int64_t count) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < count; ++i) words.push_back(std::to_string(sizes[i]));
  return str("[", join(words, ", "), "]");
}

}  // namespace

// The ranks compare what they are about to do. A description has a fixed size, so that it can be exchanged whatever the
// ranks disagree on.
void Group::Impl::check_call(const char* operation, const Tensor& x, int64_t detail) const {
  check_sendable(operation, x);
  if (!debug) return;
  constexpr int64_t words = 16, max_dimensions = 8, name_bytes = 3 * 8;
  check(x.dim() <= max_dimensions, "collective: ", x.dim(), " dimensions");
  Tensor mine = at::zeros({words}, at::kLong), all = at::empty({size * words}, at::kLong);
  int64_t* w = mine.mutable_data_ptr<int64_t>();
  std::strncpy(reinterpret_cast<char*>(w), operation, name_bytes - 1);
  w[3] = int64_t(x.scalar_type());
  w[4] = detail;
  w[5] = x.dim();
  for (int64_t i = 0; i < x.dim(); ++i) w[6 + i] = x.size(i);
  gloo->all_gather(all, mine);
  const int64_t* seen = all.const_data_ptr<int64_t>();
  for (int64_t member = 1; member < size; ++member) {
    if (std::memcmp(seen, seen + member * words, words * sizeof(int64_t)) == 0) continue;
    auto line = [&](int64_t m) {
      const int64_t* s = seen + m * words;
      return str("\n    member ", m, ": ", reinterpret_cast<const char*>(s), " of ", toString(at::ScalarType(s[3])),
                 " ", shape_text(s + 6, s[5]), ", argument ", s[4]);
    };
    throw Bug(str("collective: the ranks of ", name, " do not make the same call:", line(0), line(member)));
  }
}

int64_t Group::rank() const { return impl_ ? impl_->rank : 0; }
int64_t Group::size() const { return impl_ ? impl_->size : 1; }

void Group::all_reduce(const Tensor& x, Reduce reduce) const {
  if (!impl_) return;
  at::NoGradGuard no_grad;
  impl_->check_call("all_reduce", x, int64_t(reduce));
  if (x.numel() == 0) return;
  bool direct = x.is_contiguous() && !(narrow_float(x) && reduce == Reduce::sum);
  Tensor buffer = direct ? x.detach() : narrow_float(x) ? x.to(at::kFloat).contiguous() : x.contiguous();
  impl_->gloo->all_reduce(buffer, reduce);
  if (!direct) x.detach().copy_(buffer);
}

Tensor Group::all_gather(const Tensor& x, int64_t dimension) const {
  if (!impl_) return x;
  at::NoGradGuard no_grad;
  impl_->check_call("all_gather", x, dimension);
  // Gloo concatenates the parts along dimension 0, so `dimension` is moved there first.
  Tensor part = x.movedim(dimension, 0).contiguous();
  auto shape = part.sizes().vec();
  shape[0] *= impl_->size;
  Tensor result = at::empty(shape, part.options());
  if (part.numel() > 0) impl_->gloo->all_gather(result, part);
  return result.movedim(0, dimension).contiguous();
}

Tensor Group::reduce_scatter(const Tensor& x, int64_t dimension) const {
  if (!impl_) return x;
  at::NoGradGuard no_grad;
  check(x.size(dimension) % impl_->size == 0, "reduce_scatter: dimension ", dimension, " of ", x.size(dimension),
        " does not divide by ", impl_->size);
  impl_->check_call("reduce_scatter", x, dimension);
  Tensor whole = x.movedim(dimension, 0);
  whole = (narrow_float(x) ? whole.to(at::kFloat) : whole).contiguous();
  auto shape = whole.sizes().vec();
  shape[0] /= impl_->size;
  Tensor result = at::empty(shape, whole.options());
  if (whole.numel() > 0) impl_->gloo->reduce_scatter(result, whole);
  return result.movedim(0, dimension).to(x.scalar_type()).contiguous();
}

void Group::broadcast(const Tensor& x, int64_t root) const {
  if (!impl_) return;
  at::NoGradGuard no_grad;
  impl_->check_call("broadcast", x, root);
  if (x.numel() == 0) return;
  Tensor buffer = x.detach().contiguous();
  impl_->gloo->broadcast(buffer, root);
  if (buffer.data_ptr() != x.data_ptr()) x.detach().copy_(buffer);
}

void Group::barrier() const {
  if (impl_) impl_->gloo->barrier();
}

Tensor Group::part(const Tensor& x, int64_t dimension) const {
  int64_t size = x.size(dimension) / this->size();
  return impl_ ? x.narrow(dimension, rank() * size, size) : x;
}

struct Team::Impl {
  std::shared_ptr<Store> store;
  bool debug = false;
  std::map<mesh::Axes, Group> groups;
};

Team::Team(mesh::Mesh mesh, int64_t rank) : mesh_(std::move(mesh)), rank_(rank) {}
Team::~Team() = default;

std::shared_ptr<const Team> Team::alone() {
  static const std::shared_ptr<const Team> team(new Team(mesh::Mesh(), 0));
  return team;
}

std::shared_ptr<const Team> Team::join(const mesh::World& world, mesh::Mesh mesh, const TeamOptions& options) {
  check(mesh.ranks() == world.size, "team: a mesh of ", mesh.ranks(), " ranks for ", world.size);
  std::shared_ptr<Team> team(new Team(std::move(mesh), world.rank));
  if (world.size == 1) return team;
  const char* const given = std::getenv("EASYDEL_DEBUG_COLLECTIVES");
  const std::string debug = given ? given : "";
  if (!debug.empty() && debug != "0" && debug != "1")
    refuse("environment", str("EASYDEL_DEBUG_COLLECTIVES='", debug, "' is neither 0 nor 1"));
  team->impl_ = std::make_unique<Impl>();
  team->impl_->debug = debug == "1";
  team->impl_->store = meet(world, options);
  return team;
}

std::shared_ptr<const Team> Team::on_mesh(mesh::Mesh mesh, double timeout_seconds) const {
  check(mesh.ranks() == size(), "team: a mesh of ", mesh.ranks(), " ranks for ", size());
  std::shared_ptr<Team> team(new Team(std::move(mesh), rank_));
  if (!impl_) return team;
  team->impl_ = std::make_unique<Impl>();
  team->impl_->debug = impl_->debug;
  team->impl_->store = store_for_mesh(*impl_->store, Milliseconds(int64_t(timeout_seconds * 1000)));
  return team;
}

Group Team::group(const mesh::Axes& axes) const {
  mesh::Axes parallel = mesh_.parallel(axes);
  if (parallel.empty()) return Group();
  auto& groups = impl_->groups;
  if (auto found = groups.find(parallel); found != groups.end()) return found->second;

  auto impl = std::make_shared<Group::Impl>();
  std::vector<std::string> members;
  for (int64_t member : mesh_.group(parallel, rank_)) members.push_back(std::to_string(member));
  impl->name = easydel::join(parallel, ".") + ":" + easydel::join(members, ",");
  impl->rank = mesh_.index(parallel, rank_);
  impl->size = int64_t(members.size());
  impl->debug = impl_->debug;
  impl->gloo = make_group(*impl_->store, impl->name, impl->rank, impl->size);
  return groups.emplace(std::move(parallel), Group(std::move(impl))).first->second;
}

Tensor Team::cut(const Tensor& whole, const mesh::PartitionSpec& layout) const {
  Tensor result = whole;
  mesh::Slice slice = mesh::slice_of(layout, whole.sizes().vec(), mesh_, rank_);
  for (size_t i = 0; i < layout.size(); ++i) result = result.narrow(int64_t(i), slice.begin[i], slice.size[i]);
  return result;
}

Tensor Team::whole(const Tensor& part, const mesh::PartitionSpec& layout) const {
  Tensor result = part;
  for (size_t i = 0; i < layout.size(); ++i) result = group(layout[i]).all_gather(result, int64_t(i));
  return result;
}

}  // namespace easydel::collective
