// Questions as JSON text, answers as documents: the whole library behind one function.
//
// It is what a page, another language or a server talks to. No file is read and nothing is written: networks, profiles
// and plans come as text inside of the question. docs/explorer.md lists the questions.
#pragma once

#include <string>
#include <string_view>

#include "gar/language.hpp"

namespace gar {

/// Answers {"ask": "predict", "topology": "tree:16x24", "count": "1e8"} with the document that `gar predict --json`
/// prints, and so on. A question that cannot be answered gets a document of schema "gar.error/1" whose "error" says
/// what is wrong and what would be accepted, and whose "exit_code" is what the command line would exit with. Never
/// throws, except when there is no memory left.
std::string answer(std::string_view question);

}  // namespace gar
