package shuffle

import "benchrun/runtime/failpoint"

// Places where the life of a partition can be made to go wrong. The subject is
// the path of the file or folder below the store.
var (
	beforeCreate     = failpoint.New("shuffle/create")
	afterCreate      = failpoint.New("shuffle/created")
	beforeSpill      = failpoint.New("shuffle/spill")
	afterSpill       = failpoint.New("shuffle/spilled")
	beforeWrite      = failpoint.New("shuffle/write")
	afterWrite       = failpoint.New("shuffle/written")
	beforeIndex      = failpoint.New("shuffle/index")
	afterIndex       = failpoint.New("shuffle/indexed")
	beforeSync       = failpoint.New("shuffle/sync")
	afterSync        = failpoint.New("shuffle/synced")
	beforeRename     = failpoint.New("shuffle/rename")
	afterRename      = failpoint.New("shuffle/renamed")
	beforeSyncFolder = failpoint.New("shuffle/sync-folder")
	afterSyncFolder  = failpoint.New("shuffle/synced-folder")
	beforeDelete     = failpoint.New("shuffle/delete")
	afterDelete      = failpoint.New("shuffle/deleted")
	beforeOpen       = failpoint.New("shuffle/open")
	beforeRead       = failpoint.New("shuffle/read")
)
