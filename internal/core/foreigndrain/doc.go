// Package foreigndrain tells who else empties a node, as the node itself shows it: the
// cluster-autoscaler and Karpenter, which remove it then, by their taints, and anybody else
// by the condition DrainInProgress (KEP-5683). It also tells which nodes and pods bear what
// autoscalers are asked by.
//
// It decides nothing: two drains of one node go by the same eviction API and the same
// budgets, so that neither stops for the other. What it shows is what somebody has written
// who may write to the node; nothing that cannot be taken back may follow from it.
package foreigndrain
