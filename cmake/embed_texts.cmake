# Writes a C++ file with the contents of text files, so that a program has them wherever it runs:
#   cmake -DFOLDER=data/paper -DENDING=.json -DHEADER=x/paper.hpp -DFUNCTION=gar::cli::paper_text -DOUTPUT=x.cpp -P embed_texts.cmake
# FUNCTION takes the name of a file without its ending, as a std::string_view, and returns its text; an empty one for a name that
# is not there. With -DNAMES=gar::cli::paper_names that function returns all names, as a std::span of std::string_view. HEADER
# declares both.
file(GLOB paths "${FOLDER}/*${ENDING}")
list(SORT paths)
set(cases "")
set(names "")
foreach(path IN LISTS paths)
  cmake_path(GET path STEM name)
  file(READ "${path}" text)
  string(APPEND names "\"${name}\", ")
  string(APPEND cases "  if (name == \"${name}\") {\n    return R\"embedded(${text})embedded\";\n  }\n")
endforeach()
file(WRITE "${OUTPUT}" "// Written by cmake/embed_texts.cmake.
#include \"${HEADER}\"

std::string_view ${FUNCTION}(std::string_view name) {
${cases}  return {};
}
")
if(DEFINED NAMES)
  file(APPEND "${OUTPUT}" "
std::span<const std::string_view> ${NAMES}() {
  static constexpr std::string_view kNames[] = {${names}};
  return kNames;
}
")
endif()
