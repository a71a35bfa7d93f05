-- A cancelled market pays each token a price, as a resolved one does: `payouts` holds it. There are no scaled refunds any more.
ALTER TABLE markets DROP COLUMN refund_scale_wad;

-- The result that a scan goes through, so that another result begins it again.
ALTER TABLE payout_scans RENAME COLUMN refund_scale_wad TO payouts;
