package known

// Actions of clusters that the keeper starts.
const (
	RepairNode          = "repairNode" // makes a node work again
	RenewCertificates   = "renewCertificates"
	DefragmentEtcd      = "defragmentEtcd"
	ScaleByLoad         = "scaleByLoad"
	ScaleGatewaysByLoad = "scaleGatewaysByLoad"
	BackUp              = "backUp"
	EndBackup           = "endBackup"
	BackUpClaims        = "backUpClaims"
)

// Their arguments.
const (
	ArgumentNode       = "node"
	ArgumentReason     = "reason"
	ArgumentScheduled  = "scheduled"
	ArgumentIncomplete = "incomplete"
	ArgumentKept       = "kept"
)
