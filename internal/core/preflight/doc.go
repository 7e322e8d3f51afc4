// Package preflight forecasts what would happen if nodes were drained.
//
// It decides nothing about drains: it runs the decisions of the controllers, one after
// the other, in a hypothetical world in which a NodeMaintenance is in stage Drain, lets
// pods leave as the API server would let them go, has their owners make others, and
// asks a Placer where these would run, until nothing moves any more. What is left then,
// and is waited for, is held up, in the words that the status would have.
//
// Invariants: nothing that is given is changed; the order of the snapshot makes no
// difference; what could not be read is unknown, and never a yes. Which of several pods
// a budget lets go is up to chance, so all of them may be held up.
package preflight
