// Parses statements: the tags and the data between them.
#include "easydel/text/jinja/parser.h"

#include <algorithm>

namespace easydel::text::jinja {
namespace {

class Parser : ExpressionParser {
 public:
  Parser(std::string_view source, const std::string& name) : ExpressionParser(lex(source, name), name) {}

  Template run() {
    Template out;
    out.name = name_;
    out.body = body({});
    if (current().kind != Kind::end) unexpected("");
    if (!unknown_.empty()) {
      at_ = unknown_.front().first;
      wrong(unknown_.front().second);
    }
    out.has_generation_blocks = has_generation_blocks_;
    out.blocks = std::move(blocks_);
    return out;
  }

 private:
  using Words = std::initializer_list<std::string_view>;
  using StatementPtr = std::unique_ptr<Statement>;

  // Parses statements up to a tag whose name is in `ends`; current() is then that name.
  Body body(Words ends) {
    Body out;
    if (++depth_ > 150) wrong("is nested too deeply");
    while (current().kind != Kind::end) {
      if (current().kind == Kind::data) {
        auto statement = make(Statement::Kind::data);
        statement->text = tokens_[at_++].text;
        out.push_back(std::move(statement));
      } else if (current().kind == Kind::variable_begin) {
        auto statement = make(Statement::Kind::output);
        ++at_;
        statement->expression = tuple();
        if (current().kind != Kind::variable_end) unexpected("'}}'");
        ++at_;
        out.push_back(std::move(statement));
      } else {
        size_t begin = at_++;
        if (current().kind == Kind::name && std::find(ends.begin(), ends.end(), current().text) != ends.end()) {
          --depth_;
          return out;
        }
        at_ = begin + 1;
        if (auto statement = tag()) out.push_back(std::move(statement));
      }
    }
    if (ends.size())
      wrong("the template ends inside of a block", "{% " + std::string(*(ends.end() - 1)) + " %} is missing");
    --depth_;
    return out;
  }

  // As body(), in a new scope, and past the end tag, which must be `end`.
  Body block(std::string_view end) {
    bool before = soft_;
    soft_ = false;
    Body out = body({end});
    soft_ = before;
    ++at_;
    end_tag();
    return out;
  }

  StatementPtr make(Statement::Kind kind) const {
    auto out = std::make_unique<Statement>();
    out->kind = kind;
    out->line = current().line;
    out->column = current().column;
    return out;
  }

  void end_tag() {
    if (current().kind != Kind::block_end) unexpected("'%}'");
    ++at_;
  }

  StatementPtr tag() {
    if (current().kind != Kind::name) unexpected("the name of a tag");
    std::string word = current().text;
    if (word == "if") return if_();
    if (word == "for") return for_();
    if (word == "set") return set();
    if (word == "macro") return macro();
    if (word == "call") return call();
    if (word == "filter") return filter();
    if (word == "with") return with();
    if (word == "generation") return generation();
    if (word == "block") return named_block();
    if (word == "autoescape") return autoescape();
    if (word == "break" || word == "continue") {
      if (!loops_) wrong("'" + word + "' is outside a loop");
      auto out = make(word == "break" ? Statement::Kind::break_ : Statement::Kind::continue_);
      ++at_;
      end_tag();
      return out;
    }
    for (std::string_view file : {"include", "import", "from", "extends"})
      if (word == file)
        wrong("{% " + word + " %} is refused: a chat template is one file",
              "write what it would bring into the template");
    wrong("unknown tag '" + word + "'",
          "known: if, for, set, macro, call, filter, with, block, autoescape, generation, break, continue, raw");
  }

  StatementPtr if_() {
    auto out = make(Statement::Kind::if_);
    bool before = soft_;
    soft_ = true;
    while (true) {
      ++at_;  // if, elif
      ExpressionPtr condition = tuple(false);
      end_tag();
      Body inner = body({"elif", "else", "endif"});
      out->branches.emplace_back(std::move(condition), std::move(inner));
      if (is_name("elif")) continue;
      if (take_name("else")) {
        end_tag();
        out->branches.emplace_back(nullptr, body({"endif"}));
      }
      ++at_;  // endif
      end_tag();
      soft_ = before;
      return out;
    }
  }

  Target target(bool with_namespace, Words enders) {
    auto one = [&] {
      Target out;
      if (take_symbol("(")) {
        out = target(with_namespace, {});
        expect_symbol(")");
        return out;
      }
      out.name = expect_name();
      for (std::string_view word : {"true", "false", "none", "True", "False", "None"})
        if (out.name == word) wrong("can't assign to '" + out.name + "'");
      if (with_namespace && take_symbol(".")) out.attribute = expect_name();
      return out;
    };
    Target first = one();
    if (!is_symbol(",")) return first;
    Target out;
    out.parts.push_back(std::move(first));
    while (take_symbol(",")) {
      if (is_symbol("=") || is_symbol(")") || current().kind == Kind::block_end) break;
      if (std::any_of(enders.begin(), enders.end(), [&](auto word) { return is_name(word); })) break;
      out.parts.push_back(one());
    }
    return out;
  }

  StatementPtr for_() {
    auto out = make(Statement::Kind::for_);
    ++at_;
    out->target = target(false, {"in"});
    if (!take_name("in")) unexpected("'in'");
    out->expression = tuple(false, {"recursive"});
    bool before = soft_;
    soft_ = false;
    if (take_name("if")) out->condition = expression();
    out->recursive = take_name("recursive");
    end_tag();
    ++loops_;
    out->body = body({"else", "endfor"});
    --loops_;
    if (take_name("else")) {
      end_tag();
      out->otherwise = body({"endfor"});
    }
    soft_ = before;
    ++at_;
    end_tag();
    return out;
  }

  StatementPtr set() {
    auto out = make(Statement::Kind::set);
    ++at_;
    out->target = target(true, {});
    if (take_symbol("=")) {
      out->expression = tuple();
      end_tag();
      return out;
    }
    out->kind = Statement::Kind::set_block;
    if (is_symbol("|")) out->expression = filters(nullptr, false);
    end_tag();
    out->body = block("endset");
    return out;
  }

  void parameters(Macro& macro) {
    expect_symbol("(");
    while (!is_symbol(")")) {
      if (!macro.parameters.empty()) expect_symbol(",");
      if (is_symbol(")")) break;
      macro.parameters.push_back(expect_name());
      if (take_symbol("="))
        macro.defaults.push_back(expression());
      else if (!macro.defaults.empty())
        wrong("a parameter without a default follows one with a default");
    }
    expect_symbol(")");
  }

  void macro_body(Macro& macro, std::string_view end) {
    size_t begin = at_;
    int loops = std::exchange(loops_, 0);
    macro.body = block(end);
    loops_ = loops;
    auto uses = [&](std::string_view word) {
      return std::any_of(tokens_.begin() + begin, tokens_.begin() + at_,
                         [&](const Lexeme& token) { return token.kind == Kind::name && token.text == word; });
    };
    macro.uses_varargs = uses("varargs");
    macro.uses_kwargs = uses("kwargs");
    macro.uses_caller = uses("caller");
  }

  StatementPtr macro() {
    auto out = make(Statement::Kind::macro);
    ++at_;
    auto macro = std::make_shared<Macro>();
    macro->name = expect_name();
    parameters(*macro);
    end_tag();
    macro_body(*macro, "endmacro");
    out->macro = std::move(macro);
    return out;
  }

  StatementPtr call() {
    auto out = make(Statement::Kind::call);
    ++at_;
    auto macro = std::make_shared<Macro>();
    macro->name = "caller";
    if (is_symbol("(")) parameters(*macro);
    out->expression = expression();
    if (out->expression->kind != Expression::Kind::call) wrong("{% call %} needs a call", "{% call name(arguments) %}");
    end_tag();
    macro_body(*macro, "endcall");
    out->macro = std::move(macro);
    return out;
  }

  StatementPtr filter() {
    auto out = make(Statement::Kind::filter);
    ++at_;
    out->expression = filters(nullptr, true);
    end_tag();
    out->body = block("endfilter");
    return out;
  }

  StatementPtr with() {
    auto out = make(Statement::Kind::with);
    ++at_;
    while (current().kind != Kind::block_end) {
      if (!out->bindings.empty()) expect_symbol(",");
      Target to;
      to.name = expect_name();
      expect_symbol("=");
      out->bindings.emplace_back(std::move(to), expression());
    }
    end_tag();
    out->body = block("endwith");
    return out;
  }

  StatementPtr generation() {
    auto out = make(Statement::Kind::generation);
    has_generation_blocks_ = true;
    ++at_;
    end_tag();
    int loops = std::exchange(loops_, 0);
    out->body = block("endgeneration");
    loops_ = loops;
    return out;
  }

  StatementPtr named_block() {
    auto out = make(Statement::Kind::block);
    ++at_;
    out->text = expect_name();
    if (is_symbol("-")) wrong("the name of a block has a hyphen", "use an underscore instead");
    for (const Statement* other : blocks_)
      if (other->text == out->text) wrong("block '" + out->text + "' defined twice");
    blocks_.push_back(out.get());
    out->scoped = take_name("scoped");
    out->required = take_name("required");
    end_tag();
    int loops = std::exchange(loops_, 0);
    bool before = std::exchange(soft_, false);
    out->body = body({"endblock"});
    soft_ = before;
    loops_ = loops;
    for (auto& inner : out->body)
      if (out->required &&
          (inner->kind != Statement::Kind::data || inner->text.find_first_not_of(" \t\r\n\v\f") != std::string::npos))
        wrong("Required blocks can only contain comments or whitespace");
    ++at_;
    take_name(out->text);
    end_tag();
    return out;
  }

  StatementPtr autoescape() {
    auto out = make(Statement::Kind::autoescape);
    ++at_;
    out->expression = expression();
    end_tag();
    out->body = block("endautoescape");
    return out;
  }

  int loops_ = 0;
  std::vector<const Statement*> blocks_;
  bool has_generation_blocks_ = false;
};

}  // namespace

Template parse(std::string_view source, const std::string& name) { return Parser(source, name).run(); }

}  // namespace easydel::text::jinja
