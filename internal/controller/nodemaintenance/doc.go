// Package nodemaintenance carries out what core/maintenance decides: it cordons
// nodes, asks for the evacuation of pods and reports.
//
// Maintenances and nodes that belong together (core/group) are a work item: one pass
// sees all of them, so a burst of events costs few passes, and none of any other
// group. A pass observes, decides, records, acts and reports, in this order. What was
// not recorded is not acted on. A write that is refused stops what it is about, rests
// for longer each time, up to a minute, and is a blocker in the status meanwhile; a
// read that failed and a decision that panics stop their group. All memory of a pass
// is in the API, so that a manager that dies between any two writes is continued by
// the next one.
package nodemaintenance
