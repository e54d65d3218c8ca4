// The library behind one function of C: what the worker of the explorer page calls. Built twice: as WebAssembly, and as
// a native program for the test that compares both, which answers a question per line.
#include <string>

#include "gar/ask.hpp"

#ifdef __EMSCRIPTEN__

#include <emscripten.h>

// glibc's, and here there is no environment.
extern "C" char* secure_getenv(const char* /*name*/) { return nullptr; }

// The text is valid until the next call.
extern "C" EMSCRIPTEN_KEEPALIVE const char* gar_answer(const char* question) {
  static std::string document;
  document = gar::answer(question);
  return document.c_str();
}

#else

#include <iostream>

int main() {
  std::string question;
  while (std::getline(std::cin, question)) {
    const std::string document = gar::answer(question);
    // The length first: documents have lines of their own.
    std::cout << document.size() << '\n' << document << std::flush;
  }
  return 0;
}

#endif
