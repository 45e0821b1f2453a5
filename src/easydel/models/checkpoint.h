// Matches a checkpoint with the model that it fills: names, shapes and dtypes of the parameters, and everything that
// does not fit. Reads one tensor at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "easydel/models/family.h"
#include "easydel/models/kept_codes.h"
#include "easydel/models/unfit.h"
#include "easydel/nn/parameter.h"
#include "easydel/quant/coded_folder.h"

namespace easydel::models {

// fp32 mean of the first `rows` rows of `values`.
Tensor mean_of_rows(const Tensor& values, int64_t rows);

class Checkpoint {
 public:
  // `family` must outlive it. `tied`: the head uses the embedding's weight. `stack`: prefix of the stack's names in the
  // model. `other_head`: the file may have another head than the model. `part`: the part of the folder's model that is
  // read; tensors of other parts are left alone. null: the model has one part.
  Checkpoint(quant::CodedFolder folder, const Family& family, bool tied, std::string stack, bool other_head,
             const FamilyPart* part = nullptr);

  // The model has `to` tokens, and the file `from`: more rows of its embedding and output layer are the mean of the
  // file's.
  void grow(int64_t from, int64_t to);

  // Whether an entry of the head starts from random values because the file has another head.
  bool starts(const nn::Entry& entry, const std::vector<nn::TensorSource>& sources) const;

  // Sets entry.source to the first of `sources` whose tensors all exist. True if there was one, of floating dtype and
  // of the entry's shape; otherwise the misfit is kept for refuse_unfit. Reads headers only.
  bool match(nn::Entry& entry, const std::vector<nn::TensorSource>& sources);
  // match(), then loads the values into entry.shard, in the dtype and on the device of `options`. If nothing has to be
  // converted and the weight is `frozen`, the shard is the file's mapped memory. `own_type`: if the file holds fp32 or
  // bf16, the shard keeps that dtype. A tensor that does not fit gets no shard, and neither does a weight whose codes
  // `keep` takes over; null: codes are decoded.
  void fill(nn::Entry& entry, const std::vector<nn::TensorSource>& sources, const at::TensorOptions& options,
            bool frozen, bool own_type = false, KeptCodes* keep = nullptr);
  // Called after every parameter of a model with `layers` layers. UserError `where` that lists all tensors that are
  // missing, of a wrong shape or dtype, or not in the model, with likely names and the keys of `config` (of the file
  // `config_file`) that decide a size.
  void refuse_unfit(const std::string& where, int64_t layers, const Value& config,
                    const std::string& config_file) const;

  // Whether the file has both embedding and head, and they differ: then they are not tied, whatever config.json says,
  // as in transformers. `untied`: the plan of the model with a separate head.
  bool unties(const nn::ParameterTable& untied) const;

  // Tensors of other parts, by the file's names.
  const std::vector<std::string>& left_alone() const { return left_alone_; }
  const quant::CodedFolder& folder() const { return folder_; }

  int64_t elements() const;  // of all the model's tensors
  // Bytes of the file's codes for a matched entry, its share if the file's tensor has other entries too. 0: it has
  // values, or codes that `keep` does not keep.
  int64_t coded_bytes(const nn::Entry& entry, const KeptCodes& keep) const;
  at::ScalarType type() const;  // of its weights: the first floating dtype

 private:
  // A parameter's tensor: its name in this checkpoint's spelling, and in the file, which may omit the base's prefix.
  struct Found {
    std::string spelled, file;  // empty: there is none
  };
  Found find(const std::string& name) const;
  const std::string* in_file(const std::string& name) const;  // the file's name of the tensor; null: not in the file
  std::optional<nn::TensorSource> choose(const std::vector<nn::TensorSource>& sources) const;
  const nn::TensorSource& likeliest(const std::vector<nn::TensorSource>& sources) const;
  std::string missing_name(const nn::TensorSource& source) const;
  bool fits(const nn::Entry& entry);  // dtypes and shapes
  // Whether the file's tensor of this shape lacks rows of new tokens only.
  bool grows(const nn::Entry& entry, std::vector<int64_t> found) const;
  std::vector<std::string> unexpected(int64_t layers) const;
  bool in_stack(const std::string& name) const;

  bool in_codes(const nn::TensorSource& source) const;  // all of its tensors
  // The codes of a weight that was matched, one for each of its matrices. Empty: it has values, or codes of which it is
  // not a number of whole rows, or codes that are not kept.
  std::vector<ops::Matrix> codes_of(const nn::Entry& entry, const KeptCodes& keep) const;
  Tensor take(const std::string& file) const;  // its values

  quant::CodedFolder folder_;
  const Family& family_;
  bool tied_;
  std::string stack_;
  bool other_head_;
  int64_t old_rows_ = 0, rows_ = 0;           // of grow(); 0: it was not called
  std::map<std::string, std::string> names_;  // tensors: the name in a model of one part, and the file's
  std::vector<std::string> left_alone_;
  std::map<std::string, std::string> unused_;  // the file's names, and the model's
  std::vector<std::string> missing_, asked_;   // asked_: all names of the model
  std::vector<Misshapen> misshapen_;
  std::vector<std::string> mistyped_;  // as reported
};

}  // namespace easydel::models
