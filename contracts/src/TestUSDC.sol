// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity ^0.8.37;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";

/// @notice A stand-in for USDC on chains that have none. Errors are the strings that the real token reverts with, every
/// allowance is used up as it is spent (an infinite one too), balances share their word with the blacklist flag, and a
/// transfer reads the same words of storage.
contract TestUSDC is IERC20 {
    uint256 private constant BLACKLISTED = 1 << 255;

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant PERMIT_TYPE =
        keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");

    string public constant name = "USD Coin";
    string public constant symbol = "USDC";
    string public constant currency = "USD";
    uint8 public constant decimals = 6;

    address public owner;
    bool public paused;
    uint256 public totalSupply;

    mapping(address account => uint256) private _balancesAndFlags;
    mapping(address holder => mapping(address spender => uint256)) public allowance;
    mapping(address account => bool) public isMinter;
    mapping(address holder => uint256) public nonces;

    event Mint(address indexed minter, address indexed to, uint256 amount);
    event Burn(address indexed burner, uint256 amount);
    event MinterConfigured(address indexed minter, bool allowed);
    event Blacklisted(address indexed account);
    event UnBlacklisted(address indexed account);
    event Pause();
    event Unpause();

    modifier onlyOwner() {
        require(msg.sender == owner, "Ownable: caller is not the owner");
        _;
    }

    modifier onlyMinter() {
        require(isMinter[msg.sender], "FiatToken: caller is not a minter");
        _;
    }

    modifier whenNotPaused() {
        require(!paused, "Pausable: paused");
        _;
    }

    modifier notBlacklisted(address account) {
        require(!isBlacklisted(account), "Blacklistable: account is blacklisted");
        _;
    }

    /// @param owner_ Pauses, blacklists, names minters, and is the first of them.
    constructor(address owner_) {
        owner = owner_;
        isMinter[owner_] = true;
    }

    function balanceOf(address account) public view returns (uint256) {
        return _balancesAndFlags[account] & ~BLACKLISTED;
    }

    function isBlacklisted(address account) public view returns (bool) {
        return _balancesAndFlags[account] & BLACKLISTED != 0;
    }

    function approve(address spender, uint256 value) external whenNotPaused returns (bool) {
        require(spender != address(0), "ERC20: approve to the zero address");
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    /// @notice ERC-2612, for keys: the real token also takes signatures of contracts.
    function permit(address holder, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external
        whenNotPaused
    {
        require(deadline >= block.timestamp, "FiatTokenV2: permit is expired");
        bytes32 digest = keccak256(
            abi.encodePacked(
                hex"1901",
                DOMAIN_SEPARATOR(),
                keccak256(abi.encode(PERMIT_TYPE, holder, spender, value, nonces[holder]++, deadline))
            )
        );
        address signer = ecrecover(digest, v, r, s);
        require(signer != address(0) && signer == holder, "EIP2612: invalid signature");
        allowance[holder][spender] = value;
        emit Approval(holder, spender, value);
    }

    /// @notice The EIP-712 domain of permits.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return
            keccak256(
                abi.encode(DOMAIN_TYPE, keccak256(bytes(name)), keccak256(bytes("2")), block.chainid, address(this))
            );
    }

    function transfer(address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        _transfer(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(from)
        notBlacklisted(to)
        returns (bool)
    {
        uint256 allowed = allowance[from][msg.sender];
        require(value <= allowed, "ERC20: transfer amount exceeds allowance");
        _transfer(from, to, value);
        allowance[from][msg.sender] = allowed - value;
        return true;
    }

    function mint(address to, uint256 amount)
        external
        whenNotPaused
        onlyMinter
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        require(to != address(0), "FiatToken: mint to the zero address");
        require(amount > 0, "FiatToken: mint amount not greater than 0");
        totalSupply += amount;
        require(totalSupply < BLACKLISTED, "FiatTokenV2_2: Balance exceeds (2^255 - 1)");
        _balancesAndFlags[to] += amount;
        emit Mint(msg.sender, to, amount);
        emit Transfer(address(0), to, amount);
        return true;
    }

    function burn(uint256 amount) external whenNotPaused onlyMinter notBlacklisted(msg.sender) {
        require(amount > 0, "FiatToken: burn amount not greater than 0");
        require(amount <= balanceOf(msg.sender), "FiatToken: burn amount exceeds balance");
        totalSupply -= amount;
        _balancesAndFlags[msg.sender] -= amount;
        emit Burn(msg.sender, amount);
        emit Transfer(msg.sender, address(0), amount);
    }

    function setMinter(address minter, bool allowed) external onlyOwner {
        isMinter[minter] = allowed;
        emit MinterConfigured(minter, allowed);
    }

    function blacklist(address account) external onlyOwner {
        _balancesAndFlags[account] |= BLACKLISTED;
        emit Blacklisted(account);
    }

    function unBlacklist(address account) external onlyOwner {
        _balancesAndFlags[account] &= ~BLACKLISTED;
        emit UnBlacklisted(account);
    }

    function pause() external onlyOwner {
        paused = true;
        emit Pause();
    }

    function unpause() external onlyOwner {
        paused = false;
        emit Unpause();
    }

    function _transfer(address from, address to, uint256 value) private {
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= balanceOf(from), "ERC20: transfer amount exceeds balance");
        _balancesAndFlags[from] -= value;
        _balancesAndFlags[to] += value;
        emit Transfer(from, to, value);
    }
}
