// Package nodemaintenance carries out what core/maintenance decides over all
// NodeMaintenances at once: it cordons nodes, asks for the evacuation of pods
// and reports.
//
// There is one work item, and every event that can matter leads to it: one pass
// sees everything, so a burst of events costs few passes. A pass observes,
// decides, records, acts and reports, in this order. What was not recorded is
// not acted on. A maintenance that cannot be recorded or a node that cannot be
// written to stops nothing but itself; a read that failed stops the pass. All
// memory of a pass is in the API, so that a manager that dies between any two
// writes is continued by the next one.
package nodemaintenance
