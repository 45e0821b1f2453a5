// Builds a tokenizer from a SentencePiece model by the rules of a class (sentencepiece_classes.h).
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/tokenizers/charsmap.h"
#include "easydel/text/tokenizers/json_fields.h"
#include "easydel/text/tokenizers/sentencepiece_classes.h"
#include "easydel/text/tokenizers/sentencepiece_file.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

using Numbering = SentencePieceClass::Numbering;
using Key = NamedTokens::Key;

std::string in_sequence(std::string_view list, const std::vector<std::string>& steps) {
  if (steps.empty()) return "";
  std::string out = str(R"({"type": "Sequence", ")", list, "\": [");
  for (size_t i = 0; i < steps.size(); ++i) out += (i ? ", " : "") + steps[i];
  return out + "]}";
}

class Builder {
 public:
  Builder(const SentencePieceClass& kind, std::string_view bytes, const Value& config, NamedTokens& named,
          const std::string& name)
      : kind_(kind), name_(name), file_(parse_sentencepiece(bytes, name)), config_(config), named_(named) {
    named_.fill(kind_.named);
    // A mask given as a plain string strips the blank before it.
    const Value* written = config_.find(NamedTokens::keys[Key::mask]);
    std::optional<AddedToken>& mask = named_.tokens[Key::mask];
    if (!mask || (named_.given[Key::mask] && !(written && written->is_text()))) return;
    mask->lstrip = kind_.mask_takes_blank;
    mask->normalized = kind_.mask_is_normalized;
  }

  ReadTokenizer build() {
    number();
    ReadTokenizer out;
    std::string unknown = kind_.merges ? content(Key::unk) : vocabulary_[find_unknown()];
    make_model(out.parts);
    if (TokenId id = out.parts.model->vocabulary().find(unknown); id >= 0) out.unk = id;
    set_steps(out.parts, normalizer(), pre_tokenizer(), metaspace());
    out.special = special();
    bool legacy = !kind_.legacy_single.empty() && bool_field(config_, "legacy_behaviour", false);
    if (!kind_.single.empty())
      out.frame = Frame{steps(legacy ? kind_.legacy_single : kind_.single),
                        steps(legacy ? kind_.legacy_pair : kind_.pair), kind_.yields};
    return out;
  }

 private:
  std::string content(Key key) const { return named_.content(key, kind_.named); }

  void add(std::string_view token, double score = 0) {
    vocabulary_.emplace_back(token);
    scores_.push_back(score);
  }
  void add_pieces(size_t from) {
    for (size_t i = from; i < file_.pieces.size(); ++i) add(file_.pieces[i].text, file_.pieces[i].score);
  }
  int64_t count_of(std::string_view key, int64_t usual) const {
    int64_t count = int_field(config_, key, usual);
    if (count < 0 || count > 1 << 20) refuse("tokenizer.json", str("'", key, "' is ", count), "give a small count");
    return count;
  }

  void number() {
    switch (kind_.numbering) {
      case Numbering::file:
        return add_pieces(0);
      case Numbering::fairseq:
        for (Key key : {kind_.first, Key::pad, Key::eos, Key::unk}) add(content(key));
        add_pieces(3);
        for (std::string_view language : kind_.languages) add(language);
        return add(content(Key::mask));
      case Numbering::nllb:
        for (Key key : {Key::bos, Key::pad, Key::eos, Key::unk}) add(content(key));
        for (const auto& piece : file_.pieces)
          if (std::find(vocabulary_.begin(), vocabulary_.begin() + 4, piece.text) == vocabulary_.begin() + 4)
            add(piece.text);
        return;
      case Numbering::seamless:
        for (std::string_view token : {"<pad>", "<unk>", "<s>", "</s>"}) add(token);
        return;  // make_model does the rest: pieces share the ids of these
      case Numbering::camembert:
        add("<s>NOTUSED");
        add(content(Key::pad));
        add("</s>NOTUSED");
        add(content(Key::unk));
        add("<unk>NOTUSED", -100);
        add_pieces(1);
        return add(content(Key::mask));
      case Numbering::pegasus: {
        add(content(Key::pad));
        add(content(Key::eos));
        // The configuration lists masks in the reverse order of the class.
        std::string mask = named_.given[Key::mask] ? content(Key::mask) : "<mask_1>";
        std::string sentence = string_field(config_, "mask_token_sent", "<mask_2>");
        add(mask);
        if (sentence != mask) add(sentence);
        for (int64_t i = 2; i < count_of("offset", 103); ++i) add(str("<unk_", i, ">"), -100);
        return add_pieces(2);
      }
      case Numbering::sentinels:
        add_pieces(0);
        for (int64_t i = count_of("extra_ids", 100); i-- > 0;) add(str("<extra_id_", i, ">"));
    }
  }

  size_t find_unknown() const {
    std::string text = content(Key::unk);
    auto at = kind_.finds_unknown ? std::find(vocabulary_.begin(), vocabulary_.end(), text) : vocabulary_.end();
    auto found = size_t(at - vocabulary_.begin());
    if (found < vocabulary_.size() && scores_[found] == 0) return found;
    bool must = kind_.numbering == Numbering::pegasus;
    auto usual = size_t(kind_.unknown < 0 ? file_.unk : kind_.unknown);
    if (must || usual >= vocabulary_.size())
      refuse(name_, str("has no piece '", text, "', which a ", kind_.name, "Tokenizer has for what is unknown"),
             "is it the model of another class?");
    return usual;
  }

  void make_model(TokenizerParts& parts) const {
    ModelData data;
    data.vocabulary.reserve(vocabulary_.size(), vocabulary_.size() * 8);
    for (size_t i = 0; i < vocabulary_.size(); ++i) data.vocabulary.add(vocabulary_[i], static_cast<TokenId>(i));
    if (kind_.numbering == Numbering::seamless)
      for (size_t i = 0; i < file_.pieces.size(); ++i)
        data.vocabulary.add(file_.pieces[i].text, static_cast<TokenId>(i + 1));
    if (kind_.merges) {
      data.merges = merges();
      Value options = Value::map();
      options.set("unk_token", Value::text(content(Key::unk)));
      options.set("fuse_unk", Value::boolean(true));
      parts.model = make_bpe(options, std::move(data), false);
    } else {
      data.scores = scores_;
      UnigramRules rules;
      rules.unknown = int64_t(find_unknown());
      parts.model = make_unigram(std::move(rules), std::move(data));
    }
  }

  // Every split of every piece into two others, in the order of the pieces: so unigram files can be merged, too.
  std::vector<std::pair<std::string_view, std::string_view>> merges() const {
    Vocabulary pieces;
    pieces.reserve(file_.pieces.size(), file_.pieces.size() * 8);
    for (size_t i = 0; i < file_.pieces.size(); ++i) pieces.add(file_.pieces[i].text, static_cast<TokenId>(i));
    std::vector<std::pair<std::string_view, std::string_view>> out;
    for (const auto& piece : file_.pieces)
      for (size_t at = 0; at < piece.text.size();) {
        next_character(piece.text, at);
        std::string_view left = piece.text.substr(0, at), right = piece.text.substr(at);
        if (!right.empty() && pieces.find(left) >= 0 && pieces.find(right) >= 0) out.emplace_back(left, right);
      }
    return out;
  }

  std::string normalizer() const {
    std::vector<std::string> out;
    bool others = file_.normalizer.charsmap.empty() && kind_.normalizers.starts_with("charsmap");
    each_part(others ? kind_.without_charsmap : kind_.normalizers, '\n', [&](std::string_view step) {
      for (auto [key, usual] : {std::pair("do_lower_case", kind_.lowers), {"keep_accents", kind_.keeps_accents}}) {
        if (!step.starts_with(key)) continue;
        std::string_view rest = step.substr(std::string_view(key).size());
        if (bool_field(config_, key, usual) != rest.starts_with('?')) return;
        step = rest.substr(1);
      }
      if (step != "charsmap")
        out.emplace_back(step);
      else if (!file_.normalizer.charsmap.empty())
        out.push_back(str(R"({"type": "Precompiled", "precompiled_charsmap": ")",
                          encode_base64(file_.normalizer.charsmap), "\"}"));
    });
    return in_sequence("normalizers", out);
  }

  std::string metaspace() const {
    bool prefix = bool_field(config_, "add_prefix_space", true);
    return str("{\"type\": \"Metaspace\", \"replacement\": \"\xE2\x96\x81\", \"prepend_scheme\": \"",
               prefix ? kind_.prefix : kind_.without_prefix, "\"}");
  }

  std::string pre_tokenizer() const {
    std::vector<std::string> out;
    each_part(kind_.pre_tokenizers, '\n', [&](std::string_view step) {
      if (size_t mark = step.find('?'); mark != std::string_view::npos) {
        if (!bool_field(config_, step.substr(0, mark), false)) return;
        step.remove_prefix(mark + 1);
      }
      out.push_back(step == "Metaspace" ? metaspace() : str("{\"type\": \"", step, "\"}"));
    });
    return in_sequence("pretokenizers", out);
  }

  std::vector<AddedToken> special() const {
    std::vector<AddedToken> out;
    if (kind_.numbering == Numbering::pegasus) {
      out.push_back(special_token(string_field(config_, "mask_token_sent", "<mask_1>")));
      for (int64_t i = 2; i < count_of("offset", 103); ++i) out.push_back(special_token(str("<unk_", i, ">")));
      return out;
    }
    for (std::string_view language : kind_.languages) out.push_back(special_token(std::string(language)));
    for (const auto& piece : file_.pieces) {
      if (piece.kind != PieceKind::control && piece.kind != PieceKind::user_defined) continue;
      out.push_back(special_token(std::string(piece.text)));
      out.back().special = kind_.all_special || piece.kind == PieceKind::control;
    }
    if (kind_.numbering == Numbering::sentinels)
      for (int64_t i = 0; i < count_of("extra_ids", 100); ++i) out.push_back(special_token(str("<extra_id_", i, ">")));
    for (int i = 0; i < kind_.made_up; ++i) out.push_back(special_token(str("<madeupword", i, ">")));
    return out;
  }

  std::vector<FrameStep> steps(std::string_view words) const {
    return read_frame(words, named_, kind_.named, [&](std::string_view, FrameStep& step) {
      std::string code = string_field(config_, kind_.language_key, std::string(kind_.language));
      bool bare = kind_.language.starts_with("__") && code.find("__") == std::string::npos;
      step.token.content = bare ? "__" + code + "__" : code;
      step.keeps_content = kind_.language_keeps_name;
    });
  }

  const SentencePieceClass& kind_;
  const std::string& name_;
  SentencePieceFile file_;
  const Value& config_;
  NamedTokens& named_;
  std::vector<std::string> vocabulary_;  // by id
  std::vector<double> scores_;           // by id; empty for byte pairs
};

}  // namespace

ReadTokenizer read_sentencepiece_as(const SentencePieceClass& kind, std::string_view bytes, const Value& config,
                                    NamedTokens& named, const std::string& name) try {
  return Builder(kind, bytes, config, named, name).build();
} catch (const UserError& error) {
  rethrow_at(name, error);
}

}  // namespace easydel::text
