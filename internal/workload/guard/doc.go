// Package guard bounds what a remote cluster may cost the manager, whatever its server sends. It
// accepts only protobuf of the kinds that were asked for, measures each message before decoding
// it, and bounds sizes, times and connections. A Ledger counts the memory of all clusters and
// disconnects the one that exceeds its bound. A small cluster never waits.
package guard
