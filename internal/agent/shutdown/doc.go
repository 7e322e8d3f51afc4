// Package shutdown holds up the shutdown of a node while its pods leave: one loop that hears
// systemd-logind, has core/nodeagent/shutdown decide, writes down what it is going to do,
// takes the inhibitor or lets it go, and says what it did.
//
// It asks the API server for nothing: what the agent's watches have shown is enough, and a
// shutdown is let go in time whether an API server answers or not. What is to be told of it
// the agent writes, which is the only one that writes its NodeAgent.
//
// Invariants: the entry is on disk before the inhibitor is taken or let go; a disk that
// cannot be written keeps no node from shutting down; a new inhibitor is taken before the
// old one is closed; until systemd-logind has been heard nothing is said.
package shutdown
