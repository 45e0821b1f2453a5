#include "easydel/quant/file_format.h"

#include <algorithm>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/base/text_table.h"

namespace easydel::quant {
namespace {

constexpr const char* other_file = "fetch the file again, or load the unquantized model";

}  // namespace

WeightTensors::WeightTensors(const weights::Folder& folder, const FileConfig& config, weights::DType dtype,
                             std::string values, std::string stem)
    : folder_(folder), config_(config), dtype_(dtype), values_(std::move(values)), stem_(std::move(stem)) {}

std::string WeightTensors::where(std::string_view ending) const {
  const std::string name = stem_ + std::string(ending);
  return folder_.has(name) ? folder_.where(name) : name;
}

bool WeightTensors::has(std::string_view ending) const { return folder_.has(stem_ + std::string(ending)); }

weights::TensorView WeightTensors::view(std::string_view ending) const {
  return folder_.at(stem_ + std::string(ending));
}

weights::TensorView WeightTensors::info(std::string_view ending) const {
  return folder_.info(stem_ + std::string(ending));
}

weights::StoredRows WeightTensors::need_stored(std::string_view ending) {
  weights::StoredRows rows = folder_.stored(stem_ + std::string(ending));
  parts_.emplace_back(stem_ + std::string(ending), rows.view);
  return rows;
}

std::optional<weights::TensorView> WeightTensors::find(std::string_view ending) {
  if (!has(ending)) return std::nullopt;
  parts_.emplace_back(stem_ + std::string(ending), view(ending));
  return parts_.back().second;
}

weights::TensorView WeightTensors::need(std::string_view ending) {
  if (auto found = find(ending)) return std::move(*found);
  refuse(stem_ + std::string(ending), "is missing, and " + stem_ + " has other tensors in codes", other_file);
}

void WeightTensors::refuse_tensor(std::string_view ending, const std::string& problem) const {
  refuse(where(ending), problem, other_file);
}

void WeightTensors::check_dtype(std::string_view ending, const weights::TensorView& view, weights::DType dtype) const {
  if (view.dtype != dtype)
    refuse_tensor(ending, str("is ", view.type_name(), "; codes of this format are ", weights::name_of(dtype)));
}

void WeightTensors::check_shape(std::string_view ending, const weights::TensorView& view,
                                const std::vector<int64_t>& shape) const {
  if (view.shape != shape)
    refuse_tensor(ending, str("is ", shape_text(view.shape), "; the other tensors require ", shape_text(shape)));
}

void WeightTensors::check_stated(std::string_view key, int64_t found) const {
  if (const auto stated = config_.integer(key); stated && *stated != found)
    refuse(config_.where.below(key), str("is ", *stated, ", but the tensors of ", stem_, " have ", found),
           "correct it, or fetch the files again");
}

std::span<const std::string_view> activation_scales() {
  static constexpr std::string_view endings[] = {
      ".input_scale", ".input_zero_point", ".input_global_scale", ".input_scale_ub", ".output_scale", ".k_scale",
      ".v_scale",     ".q_scale",          ".prob_scale",         ".k_zero_point",   ".v_zero_point"};
  return endings;
}

std::shared_ptr<CodedWeight> WeightTensors::weight(std::string format, std::vector<int64_t> shape) const {
  for (const int64_t size : shape)
    if (size <= 0)
      refuse(folder_.where(parts_.front().first), "stands for a weight of " + shape_text(shape), other_file);
  auto out = std::make_shared<CodedWeight>();
  out->format = std::move(format);
  out->shape = std::move(shape);
  out->dtype = dtype_;
  out->parts = parts_;
  const std::string layer = stem_.ends_with(".weight") ? stem_.substr(0, stem_.size() - 7) : stem_;
  for (const std::string_view ending : activation_scales())
    if (const std::string name = layer + std::string(ending); folder_.has(name))
      out->parts.emplace_back(name, folder_.at(name));
  out->where = folder_.where(parts_.front().first);
  return out;
}

void set_scales(CodedWeight& weight, const WeightTensors& tensors, std::string_view ending,
                const weights::TensorView& scales, std::array<int64_t, 2> block) {
  const int64_t out = weight.shape[weight.shape.size() - 2], in = weight.k(), matrices = weight.rows() / out;
  const int64_t count = scales.elements();
  ScaleGrid& grid = weight.grid;
  weight.scale = numbers_of(scales);
  weight.scales = count;
  grid.columns = in;
  if (matrices > 1) grid.matrix_rows = out;
  if (count == 1) return;
  if (count == matrices) {  // one for each matrix
    grid.matrix_stride = 1;
    return;
  }
  const std::vector<int64_t>& shape = scales.shape;
  const auto misfit = [&] {
    tensors.refuse_tensor(ending,
                          str("is ", shape_text(shape), ", which does not fit a weight of ", shape_text(weight.shape)));
  };
  const size_t leading = weight.shape.size() - 2;
  if (shape.size() < leading + 1 || shape.size() > leading + 2 ||
      !std::equal(shape.begin(), shape.begin() + int64_t(leading), weight.shape.begin()))
    misfit();
  const int64_t rows = shape[leading], columns = shape.size() == leading + 2 ? shape.back() : 1;
  // What a block of `size` cuts into `parts`, or what divides into so many.
  const auto part = [&](int64_t size, int64_t parts, int64_t stated) -> int64_t {
    if (parts == 1) return size;
    if (stated > 0 && (size + stated - 1) / stated == parts) return stated;
    if (parts <= 0 || size % parts != 0) misfit();
    return size / parts;
  };
  grid.rows = part(out, rows, block[0]);
  grid.columns = part(in, columns, block[1]);
  grid.row_stride = columns;
  grid.matrix_stride = rows * columns;
}

int64_t columns_of_group(const WeightTensors& tensors, int64_t in, int64_t groups) {
  if (groups == 1) return in;
  const auto stated = tensors.config().integer("group_size");
  if (stated && *stated > 0 && (in + *stated - 1) / *stated == groups) return *stated;
  if (groups <= 0 || in % groups != 0)
    refuse(tensors.stem(), str("has ", groups, " groups in rows of ", in, " values"), other_file);
  tensors.check_stated("group_size", in / groups);
  return in / groups;
}

std::vector<int32_t> groups_of_columns(const WeightTensors& tensors, std::string_view ending,
                                       const weights::TensorView& view, int64_t in, int64_t groups, int64_t columns) {
  tensors.check_dtype(ending, view, weights::DType::i32);
  tensors.check_shape(ending, view, {in});
  auto out = std::vector<int32_t>(size_t(in));
  std::memcpy(out.data(), view.bytes.data(), view.bytes.size());
  std::vector<int64_t> members(size_t(groups), 0);
  bool ordered = true;
  for (int64_t i = 0; i < in; ++i) {
    const int32_t group = out[size_t(i)];
    if (group < 0 || group >= groups)
      tensors.refuse_tensor(ending, str("column ", i, " is in group ", group, "; there are ", groups, " groups"));
    if (++members[size_t(group)] > columns)
      tensors.refuse_tensor(ending, str("more than ", columns, " columns are in group ", group));
    ordered = ordered && group == i / columns;
  }
  if (ordered) out.clear();
  return out;
}

}  // namespace easydel::quant
