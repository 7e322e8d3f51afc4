// Package nodemaintenance carries out what core/maintenance decides: it cordons nodes, requests
// evacuations and reports. Maintenances and nodes that belong together (core/group) are one work
// item. A pass observes, decides, records, acts and reports; what was not recorded is not acted
// on. A refused write stops only its own object and is a blocker meanwhile. All state is in the
// API, so that the next manager continues.
package nodemaintenance
