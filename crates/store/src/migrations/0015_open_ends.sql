-- What is asked for all the time must not cost more the more markets there are: those whose time is over, and those that are
-- settled and not yet gone through.
CREATE INDEX markets_open_end ON markets (status, end_time_ms, id) WHERE status = 'OPEN' AND chain_market_id IS NOT NULL;

INSERT INTO announcements (market_id, after_account, after_outcome_index, told_account)
    SELECT id, '', -1, '' FROM markets WHERE status IN ('RESOLVED', 'CANCELLED')
    AND NOT EXISTS (SELECT 1 FROM announcements a WHERE a.market_id = markets.id);
CREATE INDEX announcements_open ON announcements (market_id) WHERE ended_at_ms IS NULL;

INSERT INTO payout_scans (market_id, refund_scale_wad, after_account, after_outcome_index)
    SELECT id, COALESCE(refund_scale_wad, ''), '', -1 FROM markets WHERE status IN ('RESOLVED', 'CANCELLED')
    AND NOT EXISTS (SELECT 1 FROM payout_scans s WHERE s.market_id = markets.id);
UPDATE payout_scans SET ended_at_ms = NULL WHERE refund_scale_wad <>
    (SELECT COALESCE(m.refund_scale_wad, '') FROM markets m WHERE m.id = payout_scans.market_id);
CREATE INDEX payout_scans_open ON payout_scans (market_id) WHERE ended_at_ms IS NULL;
