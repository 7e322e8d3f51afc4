// Package guard bounds what a remote cluster may cost the manager, whatever its server sends.
//
// A Guard is the only way to a cluster. It takes plain protobuf of the kinds that were asked
// for, weighs each message before it is decoded, and bounds sizes, times and connections. A
// Ledger counts the memory of all clusters: a cluster that exceeds its bound is disconnected,
// and of those that share a bound the largest. A cluster that takes little never waits.
package guard
