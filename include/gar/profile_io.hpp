// Profile and measurements files to values and back (docs/formats-profile.md), and networks that profiles describe.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gar/decisions.hpp"
#include "gar/fit.hpp"
#include "gar/profile.hpp"
#include "gar/topology.hpp"

namespace gar {

/// Reads a profile file (schema "gar.profile/2", or the older "gar.profile/1"). Throws ParseError that names file,
/// field and what is accepted.
Profile read_profile_file(const std::string& path);
Profile parse_profile(std::string_view text, const std::string& source);  ///< from text; messages name `source`
/// What load_topology would read, if that is a profile file; otherwise nothing.
std::optional<Profile> find_profile(const std::string& path);
/// Reads a profile, or a file of decisions (gar/decisions.hpp), whichever it is. Throws ParseError as above.
std::variant<Profile, Decisions> read_profile_or_decisions(const std::string& path);
/// Numbers keep all their digits. Throws InvalidArgument when one is not finite (the high end of an interval may be).
void write_profile(const Profile& profile, std::ostream& out);

/// Reads a measurements file (schema "gar.measurements/2", or the older "gar.measurements/1"). Throws ParseError as
/// above.
Measurements read_measurements_file(const std::string& path);
Measurements parse_measurements(std::string_view text, const std::string& source);  ///< from text, as parse_profile
void write_measurements(const Measurements& measurements, std::ostream& out);       ///< as "gar.measurements/2"

/// A network, and what was measured about it.
struct Network {
  Topology topology;                    ///< with the parameters of the profile, if there is one
  std::optional<Profile> profile;       ///< nothing when no profile was named
  std::vector<std::string> notes = {};  ///< what the profile does not know of the topology; one sentence each
};
/// The network of a topology (as load_topology takes it), of a profile file, or, when both are named, the profile laid
/// over the topology; an empty text names nothing. Throws InvalidArgument when neither is named, and what reading
/// throws.
Network load_network(const std::string& topology, const std::string& profile_path);

}  // namespace gar
