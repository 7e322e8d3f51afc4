// Package preflight forecasts a drain. It runs the decisions of the controllers in a simulated
// cluster where pods leave, owners replace them and a Placer places them, until nothing moves.
// What is left is blocked, with the messages that the status would have. What could not be read
// is unknown, never a yes. Where a budget lets one of several pods go, any of them may be
// blocked. The input is not changed.
package preflight
