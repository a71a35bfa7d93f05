# shellcheck shell=bash
python3 examples/catalog/import_csv.py examples/catalog/markets.csv >again.jsonl
equals 'created again' "$(jq -c 'select(.summary).summary | [.created, .skipped]' again.jsonl)" '[0,7]'
equals 'markets' "$(jq -rs 'map(select(.kind == "market").key) | join(" ")' markets.jsonl)" \
  'regatta/cup regatta/storm weather/august-storm town/bridge'

# Faults name lines of the file, and create nothing.
sed -e 's/august-storm/new/' -e 's/0.55|0.45/0.55|0.46/' examples/catalog/markets.csv >bad.csv
if python3 examples/catalog/import_csv.py bad.csv 2>fault; then exit 1; fi
grep -qx 'line 4/openingOdds: must sum to exactly 1' fault
sed 's/,1,2031/,one,2031/' examples/catalog/markets.csv >bad.csv
if python3 examples/catalog/import_csv.py bad.csv 2>fault; then exit 1; fi
grep -q 'line 5: fee_percent must be a number' fault
sed 's/,Town hall,/,TOWN HALL,/' examples/catalog/markets.csv >bad.csv
sed 's/^town.bridge,/town\/tunnel,/' examples/catalog/markets.csv | tail -n 1 >>bad.csv
if python3 examples/catalog/import_csv.py bad.csv 2>fault; then exit 1; fi
grep -q "line 6: thread must be written like 'TOWN HALL' above, got 'Town hall'" fault
python3 examples/catalog/import_csv.py examples/catalog/markets.csv >again.jsonl
equals 'created after faults' "$(jq -c 'select(.summary).summary | [.created, .skipped]' again.jsonl)" '[0,7]'

# Titles that differ only in signs or in letters other than English ones are threads of their own.
{
  head -n 1 examples/catalog/markets.csv
  number=0
  for title in C C++ 'C#' 'Выборы 2031' 'Погода 2031'; do
    number=$((number + 1))
    sed -n "5s/^town.bridge,Town hall,/title\/$number,$title,/p" examples/catalog/markets.csv
  done
} >titles.csv
python3 examples/catalog/import_csv.py titles.csv --dry-run >titles.jsonl
equals 'threads of their own' "$(jq -rs '[.[] | select(.kind == "thread").key] | unique | length' titles.jsonl)" '5'

# As a spreadsheet writes it.
{ printf '\xef\xbb\xbf'; sed 's/$/\r/' examples/catalog/markets.csv; } >windows.csv
python3 examples/catalog/import_csv.py windows.csv --dry-run >again.jsonl
equals 'items of a spreadsheet' "$(jq -c 'select(.summary).summary | [.created, .skipped]' again.jsonl)" '[0,7]'
