// GAR_SIM_HOT marks the functions in which a simulation spends its time: everything that they call is compiled into
// them. Under the sanitizers that would only make the build several times slower.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GAR_SIM_HOT
#else
#define GAR_SIM_HOT [[gnu::flatten]]
#endif
