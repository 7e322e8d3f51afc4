// Package machine carries out what core/lifecycle decides over one Machine: it
// brings it up, empties its Node, waits for its volumes, and removes its
// infrastructure, its bootstrap config, its Node and at last itself.
//
// Every event that can matter leads to the Machines that it matters to, and a
// burst of events costs a few passes. A pass observes, decides, records, acts and
// reports, in this order; after a record the next pass follows at once. A write
// that was refused is told on the Machine and tried again. A Machine that cannot
// go on holds up no other one.
//
// That something is gone is only believed of the API server itself, never of a
// cache. All that is needed to go on after a restart is in the API.
package machine
