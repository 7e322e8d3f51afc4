// Package foreigndrain recognizes drains by other tools, as the node shows them: the taints of
// cluster-autoscaler and Karpenter, and the condition DrainInProgress (KEP-5683). It decides
// nothing: two drains of one node use the same eviction API and budgets and do not stop for each
// other. Anybody who may write the node can write these, so nothing irreversible follows.
package foreigndrain
