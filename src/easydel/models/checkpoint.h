// A checkpoint beside the model that it should fill: under which names and in which shapes it holds the parameters, and
// what does not fit. What is read of it is one tensor at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "easydel/models/family.h"
#include "easydel/models/unfit.h"
#include "easydel/nn/parameter.h"
#include "easydel/weights/folder.h"

namespace easydel::models {

class Checkpoint {
 public:
  // `family` must outlive it. `tied`: the head's values are the embedding's. `stack`: what the model's names of its
  // stack begin with. `other_head`: the file is of another task, or may be. `part`: of the folder's model that is
  // read, whose other tensors are left alone; null: the model is of one part.
  Checkpoint(weights::Folder folder, const Family& family, bool tied, std::string stack, bool other_head,
             const FamilyPart* part = nullptr);

  // Whether an entry of the head is to start from random values, since the file has another head.
  bool starts(const nn::Entry& entry, const std::vector<nn::Source>& sources) const;

  // Sets entry.source to the first of `sources` whose tensors are all there. Whether one was, of floating numbers and
  // in the shapes that the entry asks for; what did not fit is remembered for refuse_unfit. Reads headers only.
  bool match(nn::Entry& entry, const std::vector<nn::Source>& sources);
  // match, then the values as entry.shard, in the number type and on the device of `options`. Where nothing is to be
  // changed of them and nobody will learn (`frozen`), the shard is the file's own mapped bytes. What did not fit stays
  // without a shard.
  void fill(nn::Entry& entry, const std::vector<nn::Source>& sources, const at::TensorOptions& options, bool frozen);
  // After every parameter of a model of `layers` layers: UserError `where` that names all that is missing, misshapen,
  // of integers or not in the model, what it may be instead, and the keys of `config` (of the file `config_file`) that
  // decide a size.
  void refuse_unfit(const std::string& where, int64_t layers, const Value& config,
                    const std::string& config_file) const;

  // Whether embedding and head are both there and differ, so that they are two whatever config.json says, as
  // transformers takes it. `untied`: the plan of the model with a head of its own.
  bool unties(const nn::ParameterTable& untied) const;

  // Of a part: the tensors that are none of its own, by the file's names.
  const std::vector<std::string>& left_alone() const { return left_alone_; }
  const weights::Folder& folder() const { return folder_; }

  int64_t elements() const;     // of all the model's tensors
  at::ScalarType type() const;  // of its weights: the first that is a floating number

 private:
  // A parameter's tensor: its name as this checkpoint spells it, and in the file, where it may lack the base's prefix.
  struct Found {
    std::string spelled, file;  // empty: there is none
  };
  Found find(const std::string& name) const;
  const std::string* in_file(const std::string& name) const;  // what the file calls the tensor; null: it has none
  std::optional<nn::Source> choose(const std::vector<nn::Source>& sources) const;
  const nn::Source& likeliest(const std::vector<nn::Source>& sources) const;
  std::string missing_name(const nn::Source& source) const;
  bool fits(const nn::Entry& entry);  // number types and shapes
  std::vector<std::string> unexpected(int64_t layers) const;
  bool in_stack(const std::string& name) const;

  weights::Folder folder_;
  const Family& family_;
  bool tied_;
  std::string stack_;
  bool other_head_;
  std::map<std::string, std::string> names_;  // of its tensors: as the model alone calls them, and the file's
  std::vector<std::string> left_alone_;
  std::map<std::string, std::string> unused_;  // the file's names, and the model's
  std::vector<std::string> missing_, asked_;   // asked_: all names of the model
  std::vector<Misshapen> misshapen_;
  std::vector<std::string> mistyped_;  // as they are said
};

}  // namespace easydel::models
