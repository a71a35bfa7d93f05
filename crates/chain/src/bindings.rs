//! ABI and bytecode of the contracts, generated from the committed artifacts. These types are
//! private to the crate: the other modules convert them to the crate's own types.
#![expect(clippy::too_many_arguments, reason = "generated from the artifacts")]

alloy::sol!(Authority, "../../contracts/artifacts/Authority.json");
alloy::sol!(Deployer, "../../contracts/artifacts/Deployer.json");
alloy::sol!(MarketHub, "../../contracts/artifacts/MarketHub.json");
alloy::sol!(Gate, "../../contracts/artifacts/Gate.json");
alloy::sol!(Account, "../../contracts/artifacts/Account.json");
alloy::sol!(AccountFactory, "../../contracts/artifacts/AccountFactory.json");
alloy::sol!(TestUSDC, "../../contracts/artifacts/TestUSDC.json");

/// The parts of USDC's ABI that the client uses, and the errors of OpenZeppelin's token contracts.
pub mod token {
    alloy::sol! {
        interface Token {
            function balanceOf(address account) external view returns (uint256);
            function allowance(address owner, address spender) external view returns (uint256);
            function approve(address spender, uint256 value) external returns (bool);
            function transfer(address to, uint256 value) external returns (bool);
            /// Test USDC only.
            function mint(address to, uint256 value) external;

            event Transfer(address indexed from, address indexed to, uint256 value);

            error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed);
            error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
            error EnforcedPause();
            error ERC20InvalidReceiver(address receiver);
            error InsufficientBalance();
            error InsufficientAllowance();
            error TransferFromFailed();
            error TransferFailed();
        }
    }
}
